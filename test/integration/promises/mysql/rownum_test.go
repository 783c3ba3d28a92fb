package mysql_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// If an UPDATE assigns a column of the index by which MariaDB finds the rows, as a guard does, ROWNUM() stays at 1, so
// sqlfence refuses it. If a server counts correctly, the refusal can go.
func TestUpdateOfCountedRows(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "INSERT INTO books (id) VALUES (1), (2), (3), (4)")
	count := "UPDATE books SET price = 5 WHERE ROWNUM() <= 2"
	if bare := run(t, t.Context(), plain, count); bare.err != nil {
		t.Skip("only MariaDB counts rows: ", bare.err)
	} else if bare.affected != 2 {
		t.Errorf("%d rows, want 2", bare.affected)
	}
	if two := run(t, t.Context(), plain, "UPDATE books SET id = id, price = 5 WHERE ROWNUM() <= 2"); two.err != nil || two.affected == 2 {
		t.Errorf("%v, %d rows: the server counts right", two.err, two.affected)
	}
	for _, rules := range [][]sqlfence.Rule{{sqlfence.Ledger(), sqlfence.Key("id")}, {sqlfence.RowFence("fence_token")}} {
		var no *sqlfence.UnguardableError
		if got := run(t, holding(5), fence(t, dsn, rules...), count); !errors.As(got.err, &no) {
			t.Errorf("%v, %d rows, want an UnguardableError", got.err, got.affected)
		}
	}
}
