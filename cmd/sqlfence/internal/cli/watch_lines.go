package cli

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// Lines writes a watch's first results, and then each change, one per line.
type lines struct {
	*app
	most int // 0 for any number

	last    look
	written int
}

func (l *lines) show(found look) error {
	for _, text := range found.unshown {
		if !slices.Contains(l.last.unshown, text) {
			fmt.Fprintf(l.errs, "sqlfence: %s\n", text)
		}
	}
	for _, n := range changed(l.last, found) {
		if err := l.write(n.row, func() { fmt.Fprintf(l.out, "%s  %s\n", n.at, n.text) }); err != nil {
			return err
		}
		if l.written++; l.written == l.most {
			return errEnough
		}
	}
	l.last = found
	return nil
}

// News is a line's content, for programs (row) and for people (text).
type news struct {
	row      any
	at, text string
}

type (
	event struct {
		At    string `json:"at"`
		Event string `json:"event"` // token or wait
	}
	tokenNews struct {
		event
		watched
		Gone bool `json:"gone"`
	}
	waitNews struct {
		event
		database.Wait
		Gone bool `json:"gone"`
	}
)

// changed returns the names that are gone, then new and changed names, and the same of the waits.
func changed(before, now look) (all []news) {
	at := moment(time.Now())
	gone, added := differences(before.names, now.names, func(w watched) any { return w.Name })
	for _, w := range gone {
		all = append(all, news{tokenNews{event{at, "token"}, w, true}, at, visible(w.Name) + "  gone"})
	}
	for _, w := range added {
		all = append(all, news{tokenNews{event{at, "token"}, w, false}, at, visible(w.Name) + "  " + w.text()})
	}
	ended, begun := differences(before.waits, now.waits, func(w database.Wait) any { return w.ID() })
	for _, w := range ended {
		all = append(all, news{waitNews{event{at, "wait"}, w, true}, at,
			fmt.Sprintf("%s  %s waits no longer", visible(w.Name), visible(w.Who))})
	}
	for _, w := range begun {
		if !slices.ContainsFunc(before.waits, func(b database.Wait) bool { return b.ID() == w.ID() }) {
			all = append(all, news{waitNews{event{at, "wait"}, w, false}, at, waitText(w)})
		}
	}
	return all
}

// differences compares two lists. gone has the elements with keys that are missing from now; added has the new and
// changed elements.
func differences[T comparable](before, now []T, key func(T) any) (gone, added []T) {
	there, known := make(map[any]bool, len(now)), make(map[T]bool, len(before))
	for _, t := range now {
		there[key(t)] = true
	}
	for _, t := range before {
		known[t] = true
		if !there[key(t)] {
			gone = append(gone, t)
		}
	}
	for _, t := range now {
		if !known[t] {
			added = append(added, t)
		}
	}
	return gone, added
}

func (w watched) text() string {
	text := strconv.FormatInt(w.Value, 10)
	switch w.Lease {
	case "held":
		text += fmt.Sprintf("  held by %s since %s", visible(w.Holder), w.AcquiredAt)
	case "none":
		text += "  no lease"
	}
	return text
}

func waitText(w database.Wait) string {
	text := fmt.Sprintf("%s  %s waits since %s", visible(w.Name), visible(w.Who), w.Since)
	if w.For != "" {
		text += fmt.Sprintf(" for %s, %s since %s", visible(w.For), w.Does, w.Began)
	}
	return text
}
