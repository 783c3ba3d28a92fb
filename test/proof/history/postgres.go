package history

import (
	"fmt"
	"strings"
)

// deletingPostgres is the number of the request that deletes a row; the session has set it.
const deletingPostgres = "COALESCE(nullif(current_setting('proof.op', true), '')::bigint, OLD.value, 0)"

const micros = "(extract(epoch FROM %s) * 1000000)::bigint"

var postgres = dialect{
	tables: []string{`CREATE TABLE history (seq bigserial PRIMARY KEY, what text NOT NULL, name text NOT NULL, row_id bigint NOT NULL,
	op bigint NOT NULL, was bigint NOT NULL, mark bigint NOT NULL, began bigint NOT NULL, ended bigint NOT NULL)`},
	row: func(t Table, what What) []string {
		return postgresTrigger(t.Name, string(what), rowChange(t, what, deletingPostgres, postgresMicros("clock_timestamp()"), postgresMicros))
	},
	ledger: func(table string) []string {
		return append(postgresTrigger(table, "insert", ledgerInsert), postgresTrigger(table, "update", ledgerChange)...)
	},
	leases: append(
		postgresTrigger("fencing_leases", "insert", insert+leaseValues("NEW.key", "NULL", "0", "0", postgresMicros)),
		postgresTrigger("fencing_leases", "update", insert+leaseValues("NEW.key", "OLD.lock_id", "OLD.token", postgresMicros("OLD.expires_at"), postgresMicros))...),
}

func postgresMicros(column string) string { return fmt.Sprintf(micros, column) }

func postgresTrigger(table, what, do string) []string {
	name := "proof_" + table + "_" + what
	return []string{
		"CREATE FUNCTION " + name + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + do + "; RETURN NULL; END $$",
		"CREATE TRIGGER " + name + " AFTER " + strings.ToUpper(what) + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION " + name + "()",
	}
}

// leaseValues are those of a lease's event. An attempt that was sent again, after its lease had ended unseen, takes it
// again with the same lock id and a new token. Was is the token before, Op when the lease before ends.
func leaseValues(key, lock, token, expires string, micros func(string) string) string {
	what := "CASE WHEN NEW.lock_id IS NULL THEN 'end' WHEN " + lock + " = NEW.lock_id AND " + token + " = NEW.token THEN 'renew' ELSE 'grant' END"
	before := "CASE WHEN " + lock + " IS NULL THEN 0 ELSE " + expires + " END"
	return "(" + strings.Join([]string{
		what, key, "0", before, token, "NEW.token", micros("NEW.acquired_at"), micros("NEW.expires_at"),
	}, ", ") + ")"
}
