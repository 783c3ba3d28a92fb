package verify

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

func (mysql) sealAsks() string { return "LOCK IN SHARE MODE" }
func (mysql) sealOnce() string { return "given <= held" }

func (mysql) sealReads(string, string) bool { return true }

func (mysql) sealLocks() string { return "information_schema.columns" }

// sealNames: the catalogue shows a constant without its character set, and names in hexadecimal in
// a way of its own.
func (d mysql) sealNames(name string) string {
	text, plain := strings.CutPrefix(d.Text(name), "_utf8mb4'")
	if !plain {
		return ""
	}
	return "'" + text
}

// seals: a table is sealed by three triggers, which can't be switched off. One that is created later is fired
// later, and may assign columns of the new row, by their names.
func (d mysql) seals(l *look, of []*relation) (map[string]seal, error) {
	rows, err := l.rows("the seals", `SELECT CONCAT(event_object_schema, '.', event_object_table), event_manipulation, action_statement, trigger_name
FROM information_schema.triggers WHERE action_timing = 'BEFORE' AND `+d.named(of, "event_object_schema", "event_object_table")+` ORDER BY 1, 2, action_order`)
	events := make(map[string][]string)
	found := make(map[string]seal)
	for _, r := range rows {
		s := found[r[0]]
		switch ours := strings.HasPrefix(r[3], sqltext.SealPrefix); {
		case ours:
			events[r[0]] = append(events[r[0]], r[1])
			if r[1] != "DELETE" {
				s.body = r[2]
			}
		case strings.HasPrefix(r[3], sqltext.SealBusy):
			s.problem = "Seal was interrupted, and all writes are refused until it is run again"
		case r[1] != "DELETE" && slices.Contains(events[r[0]], r[1]):
			s.others = append(s.others, otherTrigger{
				problem: "The trigger " + quoteIfNeeded(d, r[3]) + " of " + r[0] + " is fired behind the seal's: it may change the mark or the row's key after they were compared.",
				remedy:  sealAgain + " That puts the seal's triggers behind it.",
				columns: r[2],
			})
		default:
			continue
		}
		found[r[0]] = s
	}
	for id, s := range found {
		if len(events[id]) < 3 && s.problem == "" {
			s.problem = "it has triggers for " + strings.Join(events[id], ", ") + " only"
			found[id] = s
		}
	}
	return found, err
}

// unsealers: who may drop a table may empty it by TRUNCATE, who may alter it may exchange its partitions or
// declare a cascade, and who may create its triggers may drop them. No trigger sees any of it.
func (d mysql) unsealers(l *look, of []*relation) (map[string][]string, string, error) {
	granted, _, err := d.granted(l, of, "'DROP', 'ALTER', 'TRIGGER'")
	return granted, "the privileges DROP (by TRUNCATE), ALTER (by EXCHANGE PARTITION or a cascade) and TRIGGER pass by it", err
}
