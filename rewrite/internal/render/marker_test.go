package render

import (
	"errors"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// TestMarkersAreRead checks that the reader returns the values of the errors that guards raise.
func TestMarkersAreRead(t *testing.T) {
	const nonce = "N0"
	for _, db := range databases.All() {
		d, err := Guarded(db.Dialect)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []guard.Kind{guard.Stale, guard.NotNewest, guard.OutOfScope, guard.UnknownName, guard.Conflict, guard.Gone, guard.NotSerial} {
			w := newWriter(&Source{Dialect: d, Nonce: nonce, Plan: new(Plan)})
			defer w.release()
			w.throw(kind, 3, "x")
			_, marker, _ := strings.Cut(w.b.String(), "'sqlfence:")
			marker, _, _ = strings.Cut(marker, "'")
			if m, ok := d.ReadMarker(errors.New("error: 'sqlfence:"+marker+"17'"), nonce, nil); !ok || m.Kind != kind || m.Token+m.Table != 3 {
				t.Errorf("%v, %s: got %+v, %v", db.Name, kind, m, ok)
			}
		}
	}
}
