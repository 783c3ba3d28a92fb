package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

const text = `# HELP sqlfence_writes_total Statements
# TYPE sqlfence_writes_total counter
sqlfence_writes_total{db_collection_name="books",error_type="stale"} 3
sqlfence_writes_total{ a = "q\"\\\n}", b="", } 1.5e+03 1395066363000
sqlfence_up 1
other{a="b"} broken
`

func TestRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	want := []Sample{
		{"sqlfence_writes_total", map[string]string{"db_collection_name": "books", "error_type": "stale"}, 3},
		{"sqlfence_writes_total", map[string]string{"a": "q\"\\\n}", "b": ""}, 1500},
		{"sqlfence_up", nil, 1},
	}
	if got, err := Read(t.Context(), server.Client(), server.URL+"/metrics", "sqlfence_"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, address := range []string{server.URL, "http://127.0.0.1:1/metrics", "http://"} {
		address = strings.Replace(address, "//", "//user:secret@", 1) + "?token=secret"
		if _, err := Read(t.Context(), server.Client(), address, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(text)
	f.Add(`a{`)
	f.Add(`a{b="\`)
	f.Add(`a{b="c"`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parse(strings.NewReader(text), "") // parse must not panic
	})
}
