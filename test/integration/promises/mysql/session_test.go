package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
)

// Values of settings for which [knobs] finds no values.
var (
	sqlModes = []string{"REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "IGNORE_BAD_TABLE_OPTIONS", "ONLY_FULL_GROUP_BY",
		"NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "ORACLE", "POSTGRESQL", "MSSQL", "DB2", "MAXDB", "ANSI", "TRADITIONAL", "NO_AUTO_VALUE_ON_ZERO",
		"NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ERROR_FOR_DIVISION_BY_ZERO",
		"HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH", "EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL",
		"TIME_TRUNCATE_FRACTIONAL"}
	knownKnobs = map[string][]string{
		"tx_isolation":             {"'READ-UNCOMMITTED'", "'READ-COMMITTED'", "'REPEATABLE-READ'", "'SERIALIZABLE'"},
		"transaction_isolation":    {"'READ-UNCOMMITTED'", "'READ-COMMITTED'", "'REPEATABLE-READ'", "'SERIALIZABLE'"},
		"character_set_client":     {"latin1", "big5", "gbk", "sjis", "cp932", "swe7", "euckr", "binary", "koi8r", "ascii"},
		"character_set_results":    {"NULL", "binary", "latin1", "utf16", "ucs2", "utf32", "ascii", "gbk", "swe7", "cp1251"},
		"character_set_connection": {"latin1", "gbk", "binary", "ascii", "koi8r"},
		"collation_connection":     {"utf8mb4_bin", "latin1_german2_ci", "utf8mb4_turkish_ci", "cp1251_general_ci"},
		"completion_type":          {"0", "1"},
		"time_zone":                {"'-07:30'", "'+12:59'"},
		"timestamp":                {"1", "2147483000", "1700000000.5"},
		"lc_messages": {"bg_BG", "cs_CZ", "da_DK", "de_DE", "el_GR", "es_ES", "et_EE", "fr_FR", "hi_IN", "hu_HU", "it_IT", "ja_JP", "ka_GE", "ko_KR", "nl_NL",
			"no_NO", "pl_PL", "pt_PT", "ro_RO", "ru_RU", "sk_SK", "sr_RS", "sv_SE", "sw_KE", "uk_UA", "zh_CN"},
		"lc_time_names": {"de_DE", "ja_JP"},
		"binlog_format": {"STATEMENT", "MIXED"},
	}
	// noKnobs are variables that end the connection, select another database, or prevent every write.
	noKnobs = []string{"max_session_mem_used", "pseudo_thread_id", "transaction_read_only", "tx_read_only", "gtid_next", "sql_log_off",
		"net_buffer_length", "max_allowed_packet", "connection_memory_limit", "innodb_lock_wait_timeout", "lock_wait_timeout", "insert_id", "last_insert_id", "identity",
		"debug_sync", "read_only", "innodb_read_only_compressed", "resultset_metadata", "max_statement_time", "max_join_size", "idle_transaction_timeout", "idle_write_transaction_timeout"}
)

// A knob is a setting of the session, with its possible values.
type knob struct {
	name   string
	values []string
}

// knobs finds the settings that a session of this server can change: those that are a number, a
// list of switches, or on or off, and the known ones.
func knobs(t *testing.T, db *sql.DB) (all []knob) {
	t.Helper()
	rows, err := db.Query("SHOW SESSION VARIABLES")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		k := knob{name: name, values: knownKnobs[name]}
		switch _, err := strconv.ParseFloat(value, 64); {
		case slices.Contains(noKnobs, name) || strings.HasSuffix(name, "_timeout"):
			continue
		case k.values != nil:
		case name == "sql_mode":
			for _, mode := range sqlModes {
				k.values = append(k.values, "'"+mode+"'", "CONCAT(@@sql_mode, ',"+mode+"')")
			}
			k.values = append(k.values, "''")
		case strings.Contains(value, "=on") || strings.Contains(value, "=off"):
			for _, s := range strings.Split(value, ",") {
				what, is, _ := strings.Cut(s, "=")
				k.values = append(k.values, "'"+what+map[string]string{"on": "=off'", "off": "=on'"}[is])
			}
		case value == "ON" || value == "OFF":
			k.values = []string{map[string]string{"ON": "0", "OFF": "1"}[value]}
		case err == nil:
			k.values = []string{"0", "1", "2", "7", "1000"}
		default:
			continue
		}
		all = append(all, k)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var settable []knob
	conn := oneConn(t, db)
	for _, k := range all { // keep the settings that a session can set
		for _, value := range k.values {
			if _, err := conn.ExecContext(context.Background(), "SET SESSION "+k.name+" = "+value); err == nil {
				settable = append(settable, k)
				break
			}
		}
	}
	return settable
}

func oneConn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// settings returns random statements that change the session.
func (r random) settings(all []knob) (list []string) {
	for range r.IntN(4) {
		k := all[r.IntN(len(all))]
		if r.IntN(4) == 0 { // sql_mode matters most
			if i := slices.IndexFunc(all, func(k knob) bool { return k.name == "sql_mode" }); i >= 0 {
				k = all[i]
			}
		}
		list = append(list, "SET SESSION "+k.name+" = "+r.pick(k.values...))
	}
	return list
}

// config changes a data source name by random options of the driver.
func (r random) config(cfg *mysql.Config) (name string) {
	flags := []struct {
		name string
		at   *bool
	}{{"interpolate", &cfg.InterpolateParams}, {"found", &cfg.ClientFoundRows}, {"multi", &cfg.MultiStatements}, {"times", &cfg.ParseTime},
		{"alias", &cfg.ColumnsWithAlias}, {"liveness", &cfg.CheckConnLiveness}}
	for _, f := range flags {
		if *f.at = r.IntN(2) == 0; *f.at {
			name += f.name + ", "
		}
	}
	if r.IntN(4) == 0 {
		cfg.Collation = r.pick("latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_general_ci")
		name += cfg.Collation
	}
	return strings.TrimSuffix(name, ", ")
}

// A policy is a random set of rules, with their verdict about a row.
type policy struct {
	name                                            string
	rules                                           []sqlfence.Rule
	key                                             string // the column; empty for none
	fence, ledger, once, serial, lock, sealed, free bool
}

func (r random) policy() (p policy) {
	add := func(rule sqlfence.Rule, name string) { p.rules, p.name = append(p.rules, rule), p.name+" "+name }
	if p.fence = r.IntN(4) > 0; p.fence {
		add(sqlfence.RowFence("fence_token"), "fence")
		if p.once = r.IntN(8) == 0; p.once {
			add(sqlfence.SingleUse(), "once")
		}
	}
	if p.serial = r.IntN(4) == 0; p.serial {
		add(sqlfence.Serial("serial"), "serial")
	}
	if p.lock = r.IntN(4) == 0; p.lock {
		add(sqlfence.EditLock("lock_by", "lock_since", "lock_expiry"), "lock")
	}
	if p.ledger = !p.fence && !p.serial && !p.lock || r.IntN(3) == 0; p.ledger {
		add(sqlfence.Ledger(), "ledger")
	}
	if !p.fence && !p.ledger {
		return p
	}
	if r.IntN(3) == 0 {
		p.key = r.pick("id", "id", "isbn")
		add(sqlfence.Key(p.key), "key "+p.key)
	}
	switch r.IntN(6) {
	case 0:
		p.free = true
		add(sqlfence.UnfencedInserts(), "new")
	case 1, 2:
		if p.sealed = p.fence && !p.lock; p.sealed {
			add(sqlfence.Sealed(), "sealed")
		}
	}
	return p
}

// A caller holds the tokens, the serial and the editor of a write's context.
type caller struct {
	tokens map[string]int64
	serial int64 // -1 for none
	editor string
}

func (c caller) context() context.Context {
	ctx := context.Background()
	for name, value := range c.tokens {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: value})
	}
	if c.serial >= 0 {
		ctx = sqlfence.WithSerial(ctx, c.serial)
	}
	if c.editor != "" {
		ctx = sqlfence.WithEditor(ctx, c.editor)
	}
	return ctx
}

func (r random) caller(p policy) caller {
	c := caller{tokens: map[string]int64{}, serial: -1, editor: r.pick("", "ann", "ann")}
	common := int64(2 + r.IntN(4))
	give := func(name string) {
		if c.tokens[name] = common; r.IntN(4) == 0 {
			c.tokens[name] = int64(1 + r.IntN(5))
		}
	}
	if p.key == "" {
		give("books")
	}
	for id := range 14 {
		if p.key != "" && r.IntN(8) > 0 {
			give("books/" + map[string]string{"id": "", "isbn": "i"}[p.key] + strconv.Itoa(id))
		}
	}
	for _, n := range []string{"n1", "n2"} {
		if p.key == "isbn" {
			give("books/" + n)
		}
	}
	if p.serial && r.IntN(3) == 0 {
		c.serial = int64(1 + r.IntN(2))
	}
	return c
}

// A stored is a row of the books.
type stored struct {
	id, isbn, rest, lock string
	mark, serial         int64
	touched, locked      bool
}

// tokenName returns the name of the row's token.
func (p policy) tokenName(s stored) string {
	switch p.key {
	case "id":
		return "books/" + s.id
	case "isbn":
		return "books/" + s.isbn
	}
	return "books"
}

// forbids returns the reason for which the caller may not write an existing row, or "".
func (p policy) forbids(c caller, newest map[string]int64, s stored) string {
	if p.fence || p.ledger {
		token, held := c.tokens[p.tokenName(s)]
		switch {
		case !held:
			return "no token"
		case p.fence && (token < s.mark || p.once && token == s.mark):
			return "a newer mark"
		case p.ledger && token != newest[p.tokenName(s)]:
			return "another token in the ledger"
		}
	}
	switch {
	case p.serial && c.serial >= 0 && c.serial != s.serial:
		return "another serial"
	case p.lock && s.locked && !strings.HasPrefix(s.lock, c.editor+" ") || p.lock && s.locked && c.editor == "":
		return "somebody's lock"
	}
	return ""
}

// lacksToken reports whether the ledger refuses one of the caller's tokens, which may be another row's.
func (p policy) lacksToken(c caller, newest map[string]int64) bool {
	for name, value := range c.tokens {
		if p.ledger && newest[name] != value {
			return true
		}
	}
	return false
}

var typedErrors = []error{sqlfence.ErrStale, sqlfence.ErrNotIssued, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable,
	sqlfence.ErrUnknownName, sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrLocked, sqlfence.ErrInvalid}

func isTyped(err error) bool {
	return slices.ContainsFunc(typedErrors, func(kind error) bool { return errors.Is(err, kind) })
}

// table returns the content of the books, as a reader without locks sees the content.
func table(t *testing.T, q *sql.Conn, database string) map[string]stored {
	t.Helper()
	rows, err := q.QueryContext(context.Background(), `SELECT id, IFNULL(isbn, '-'), CONCAT_WS('|', grp, price, IFNULL(title, '-')), IFNULL(fence_token, 0), IFNULL(serial, 0), touched > 0,
		CONCAT_WS(' ', IFNULL(lock_by, '-'), IFNULL(lock_expiry, 0)), lock_by <> '' AND IFNULL(lock_expiry, 0) > ? FROM `+database+".books ORDER BY id", time.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]stored{}
	for n := 10; rows.Next(); {
		var s stored
		var locked sql.NullBool
		if err := rows.Scan(&s.id, &s.isbn, &s.rest, &s.mark, &s.serial, &s.touched, &s.lock, &locked); err != nil {
			t.Fatal(err)
		}
		s.locked = locked.Bool
		if len(s.id) > 1 { // an AUTO_INCREMENT key, which differs each time
			s.id, n = strconv.Itoa(n), n+1
		}
		all[s.id] = s
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func show(all map[string]stored) string {
	var b strings.Builder
	for _, id := range sortedIDs(all) {
		s := all[id]
		fmt.Fprintf(&b, "\n  %s %s %s mark %d serial %d lock %s %v", id, s.isbn, s.rest, s.mark, s.serial, s.lock, s.locked)
	}
	return b.String()
}

func sortedIDs(all map[string]stored) (ids []string) {
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
