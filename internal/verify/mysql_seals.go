package verify

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// mysqlSeals is a query for the triggers before rows are written, with what is wrong with the account whose
// privileges they run with, where the session can see that.
const mysqlSeals = `SELECT CONCAT(t.event_object_schema, '.', t.event_object_table), t.event_manipulation, t.action_statement, t.trigger_name,
	CASE WHEN t.definer = CURRENT_USER() OR (SELECT COUNT(DISTINCT p.grantee) FROM information_schema.user_privileges AS p) < 2 THEN ''
	WHEN NOT EXISTS (SELECT 1 FROM information_schema.user_privileges AS p WHERE {is definer}) THEN CONCAT('there is no account ', t.definer, ' any more, by which they run')
	WHEN NOT EXISTS (SELECT 1 FROM information_schema.user_privileges AS p WHERE {is definer} AND p.privilege_type = 'TRIGGER')
		AND NOT EXISTS (SELECT 1 FROM information_schema.schema_privileges AS p WHERE {is definer} AND p.privilege_type = 'TRIGGER' AND t.event_object_schema LIKE p.table_schema)
		AND NOT EXISTS (SELECT 1 FROM information_schema.table_privileges AS p WHERE {is definer} AND p.privilege_type = 'TRIGGER' AND p.table_schema = t.event_object_schema AND p.table_name = t.event_object_table)
		THEN CONCAT('the account ', t.definer, ', by which they run, lacks the privilege TRIGGER') ELSE '' END
FROM information_schema.triggers AS t WHERE t.action_timing = 'BEFORE' AND {these} ORDER BY 1, 2, t.action_order`

const isDefiner = `REPLACE(p.grantee, '''', '') = t.definer`

// seals: a table is sealed by three triggers, which can't be switched off. One that is created later is fired
// later, and may assign columns of the new row, by their names.
func (d mysql) seals(l *look, of []target) (map[string]seals, error) {
	rels := make([]*relation, len(of))
	for i, t := range of {
		rels[i] = t.rel
	}
	these := d.named(rels, "t.event_object_schema", "t.event_object_table")
	rows, err := l.rows("the seals", strings.NewReplacer("{is definer}", isDefiner, "{these}", these).Replace(mysqlSeals))
	found := make(map[string]seals)
	for _, t := range of {
		mine := slices.DeleteFunc(slices.Clone(rows), func(r []string) bool { return r[0] != t.rel.id })
		if s, has := d.seal(l, t, mine); has {
			found[t.rel.id] = s
		}
	}
	return found, err
}

// seal reads the triggers of a table.
func (d mysql) seal(l *look, t target, rows [][]string) (s seals, has bool) {
	table, bodies := t.sealed(), make(map[string]string)
	if ledger := l.ledgerOf(t); ledger != nil && ledger.schema != t.rel.schema {
		table.LedgerIn = ledger.schema
	}
	for _, r := range rows {
		event, body, name, problem := strings.ToLower(r[1]), r[2], r[3], r[4]
		_, behind := bodies[event]
		switch {
		case strings.HasPrefix(name, sqltext.SealPrefix):
			bodies[event] = body
			if problem != "" && s.problem == "" {
				s.problem, s.remedy = problem, "Create the account again, or grant it what it lacks; or call schema.Seal again as another."
			}
		case strings.HasPrefix(name, sqltext.SealBusy):
			has, s.problem, s.remedy = true, "Seal was interrupted, and all writes are refused until it is run again", ""
		case event != "delete" && behind:
			s.others = append(s.others, otherTrigger{
				problem: "The trigger " + quoteIfNeeded(d, name) + " of " + r[0] + " is fired behind the seal's: it may change the mark or the row's key after they were compared.",
				remedy:  sealAgain + " That puts the seal's triggers behind it.",
				columns: body,
			})
		}
	}
	if len(bodies) == 0 || s.problem != "" {
		return s, has || len(bodies) > 0
	}
	for _, want := range seal.Triggers(table) {
		body, there := bodies[want.Event]
		switch wants, is := seal.Stored(want.Body), seal.Stored(body); {
		case !there:
			s.problem = "it has no trigger for " + strings.ToUpper(want.Event)
		case is != wants && s.shape == "":
			s.shape = differs("its trigger for "+strings.ToUpper(want.Event), wants, is)
		}
	}
	return s, true
}

// unsealers: who may drop a table may empty it by TRUNCATE, who may alter it may exchange its partitions or
// declare a cascade, and who may create its triggers may drop them. No trigger sees any of it.
func (d mysql) unsealers(l *look, of []*relation) (map[string][]string, string, error) {
	granted, _, err := d.granted(l, of, "'DROP', 'ALTER', 'TRIGGER'")
	return granted, "the privileges DROP (by TRUNCATE), ALTER (by EXCHANGE PARTITION or a cascade) and TRIGGER pass by it", err
}
