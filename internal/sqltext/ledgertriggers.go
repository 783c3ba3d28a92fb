package sqltext

import "strings"

// A Trigger is one that keeps the ledger's tokens from falling and its names from being lost,
// whatever client writes. docs/adr/0030 has the reasons.
type Trigger struct {
	Name string

	// Create creates it if there is none of its name, and Body is the end of that text, which
	// the catalogue shows of a trigger that is there.
	Create, Body string
}

// LedgerTriggerPrefix begins their names.
const LedgerTriggerPrefix = "sqlfence_ledger_"

// NewTrigger returns the trigger of a name, on an event such as "BEFORE DELETE ON fencing_tokens".
func NewTrigger(name, event, body string) Trigger {
	return Trigger{Name: name, Create: "CREATE TRIGGER IF NOT EXISTS " + name + " " + event + "\n" + body, Body: body}
}

// LostName is what the triggers say of a name that would be lost, and FallenToken of a token that falls.
const (
	LostName    = "sqlfence: " + LedgerTable + " keeps its names, so that no token is issued twice: "
	FallenToken = "sqlfence: tokens in " + LedgerTable + " never fall"

	// ServedToken is what they say of a first token that a name without a row may have had before. As the state of a
	// serialization failure says, what is sent again sees the floor; see [ServedState].
	ServedToken = "sqlfence: the first token of a name has to be above those of names that were deleted"
	ServedState = "40001"
)

// Differs reports whether a trigger of the name has another body than t. found has the
// catalogue's texts by the names.
func (t Trigger) Differs(found map[string]string) bool {
	text, ok := found[t.Name]
	return ok && !strings.HasSuffix(strings.TrimSpace(text), t.Body)
}

// WithoutRowID are the triggers for a ledger that has no numbers of rows.
func WithoutRowID(triggers []Trigger) (all []Trigger) {
	for _, t := range triggers {
		if strings.Contains(t.Body, "t.rowid = NEW.rowid") {
			continue
		}
		without := func(s string) string { return strings.ReplaceAll(s, " OR NEW.rowid <> OLD.rowid", "") }
		all = append(all, Trigger{Name: t.Name, Create: without(t.Create), Body: without(t.Body)})
	}
	return all
}
