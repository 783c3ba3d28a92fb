package fence

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Serve answers the requests of in until its end. Serve answers the first request, which opens the database, before
// reading more; each later request has a goroutine.
func Serve(in io.Reader, out io.Writer, answer func(Request) Answer) error {
	var mu sync.Mutex
	w := json.NewEncoder(out)
	reply := func(r Request) {
		a := answer(r)
		a.ID = r.ID
		mu.Lock()
		defer mu.Unlock()
		_ = w.Encode(a) // without a reader the input ends, too
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for first := true; lines.Scan(); first = false {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a request: %w", err)
		}
		if first {
			reply(r)
			continue
		}
		go reply(r)
	}
	return lines.Err()
}
