package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	sealing "github.com/sqlfence/sqlfence/schema"
)

const lockedBooks = `CREATE TABLE %s.books (
	id bigint AUTO_INCREMENT PRIMARY KEY, isbn varchar(20) UNIQUE, grp int NOT NULL DEFAULT 0,
	price int NOT NULL DEFAULT 0, title varchar(40) DEFAULT 'none', touched int NOT NULL DEFAULT 0,
	fence_token bigint, serial bigint, lock_by varchar(20), lock_since bigint, lock_expiry bigint, KEY (grp)) ENGINE=InnoDB AUTO_INCREMENT=10`

// TestRandomSessions has random callers write at random under random rules, settings of the session and
// options of the driver. Whatever they are: a write that changes a row which its caller may not write
// doesn't happen, and says so; another one does what it does by the bare driver, to a table
// without rules, or is refused before it is sent.
//
// A failure names its seed: SQLFENCE_SEED=n SQLFENCE_COUNT=1 runs that session alone. With SQLFENCE_FOR=20m
// it goes on for that long.
func TestRandomSessions(t *testing.T) {
	w := newWorld(t)
	seed, count := rand.Uint64N(1e9), 100
	if s := os.Getenv("SQLFENCE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	if n, err := strconv.Atoi(os.Getenv("SQLFENCE_COUNT")); err == nil {
		count = n
	}
	limit, _ := time.ParseDuration(os.Getenv("SQLFENCE_FOR"))
	begin := time.Now()
	for n := 0; n < count || time.Since(begin) < limit; n++ {
		w.session(seed + uint64(n))
	}
	t.Logf("seeds from %d: %v", seed, w.tally)
	if count >= 100 && min(w.tally["written"], w.tally["forbidden"]) < count/2 {
		t.Errorf("too few of a kind: %v", w.tally)
	}
}

// A world is two databases of the same content, of which one is fenced.
type world struct {
	*testing.T
	dsns, names [2]string
	admin       *sql.Conn // sees what isn't committed
	knobs       []knob
	tally       map[string]int
	sealed      bool // as the fenced table is
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, tally: map[string]int{}}
	for i := range w.dsns {
		w.dsns[i] = setup(t)
		cfg, err := mysql.ParseDSN(w.dsns[i])
		if err != nil {
			t.Fatal(err)
		}
		w.names[i] = cfg.DBName
	}
	db := open(t, w.dsns[0])
	w.knobs = knobs(t, db)
	w.admin = oneConn(t, open(t, w.dsns[0]))
	for _, s := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET lock_wait_timeout = 5", "SET innodb_lock_wait_timeout = 5"} {
		exec(t, w.admin, s)
	}
	w.create(bare)
	w.create(fenced)
	return w
}

// create makes the books anew: nothing else takes the rows of a table that is sealed.
func (w *world) create(which int) {
	exec(w, w.admin, "DROP TABLE "+w.names[which]+".books")
	exec(w, w.admin, fmt.Sprintf(lockedBooks, w.names[which]))
}

const bare, fenced = 0, 1

// A session is what one seed makes.
type session struct {
	*world
	random
	policy      policy
	options     string
	settings    []string
	inTx        bool
	conns       [2]*sql.Conn
	rows        []string // of the books, as INSERT takes them
	newest      map[string]int64
	description string
}

func (w *world) session(seed uint64) {
	s := &session{world: w, random: random{rand.New(rand.NewPCG(seed, 2))}}
	s.policy = s.random.policy()
	s.inTx = s.IntN(2) == 0
	for i := range s.conns {
		again := random{rand.New(rand.NewPCG(seed, 3))}
		dsn := harness.MySQLWith(w.T, w.dsns[i], func(c *mysql.Config) { s.options = again.config(c) })
		db, err := sql.Open("mysql", dsn)
		if i == fenced {
			db, err = sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", s.policy.rules...))
		}
		if err != nil {
			w.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(context.Background())
		if err != nil {
			w.Fatal(err)
		}
		defer conn.Close()
		s.conns[i] = conn
	}
	s.set()
	s.tally["sessions"]++
	s.description = fmt.Sprintf("seed %d, rules%s, in a transaction %v, options %s, settings %s", seed, s.policy.name, s.inTx, s.options, strings.Join(s.settings, "; "))
	s.invent()
	s.fill(bare)
	s.fill(fenced)
	for range 6 {
		s.one()
	}
}

// set changes both sessions, by what the fenced one doesn't refuse.
func (s *session) set() {
	for _, query := range s.random.settings(s.knobs) {
		if _, err := s.conns[fenced].ExecContext(context.Background(), query); err != nil {
			continue
		}
		if _, err := s.conns[bare].ExecContext(context.Background(), query); err == nil {
			s.settings = append(s.settings, query)
		}
	}
}

// invent makes six rows, and the ledger's tokens, most of which are what a caller most likely has.
func (s *session) invent() {
	s.newest = map[string]int64{}
	common := int64(2 + s.IntN(4))
	names := []string{"books", "books/n1", "books/n2"}
	for id := range 14 {
		names = append(names, fmt.Sprint("books/", id), fmt.Sprint("books/i", id))
	}
	ledger := make([]string, 0, len(names))
	for _, name := range names {
		if s.newest[name] = common; s.IntN(12) == 0 {
			s.newest[name] = int64(1 + s.IntN(5))
		}
		ledger = append(ledger, fmt.Sprintf("('%s', %d)", name, s.newest[name]))
	}
	exec(s, s.admin, "REPLACE INTO "+s.names[fenced]+".fencing_tokens VALUES "+strings.Join(ledger, ", "))
	for id := 1; id <= 6; id++ {
		mark, by, expiry := strconv.Itoa(s.IntN(4)), s.pick("NULL", "''", "'ann'", "'bob'"), s.pick("NULL", "1", "4000000000000000")
		if by == "''" && strings.Contains(s.description, "ORACLE") { // MariaDB trims it to NULL there, which isn't known to be nobody
			by = "NULL"
		}
		if s.policy.sealed {
			mark = strconv.Itoa(1 + s.IntN(3))
		} else if s.IntN(6) == 0 {
			mark = "NULL"
		}
		s.rows = append(s.rows, fmt.Sprintf("(%d, 'i%d', %d, %d, %s, %d, %s, 1, %s)", id, id, s.IntN(3), s.IntN(100), mark, 1+s.IntN(2), by, expiry))
	}
}

// fill gives one of the databases the rows that were invented.
func (s *session) fill(which int) {
	books := s.names[which] + ".books"
	if which == fenced && (s.sealed || s.policy.sealed) {
		s.create(which)
	} else {
		exec(s, s.admin, "DELETE FROM "+books)
	}
	exec(s, s.admin, "INSERT INTO "+books+" (id, isbn, grp, price, fence_token, serial, lock_by, lock_since, lock_expiry) VALUES "+strings.Join(s.rows, ", "))
	exec(s, s.admin, "REPLACE INTO "+s.names[which]+".pens VALUES (1, 1, 11), (2, 2, 12), (3, 1, 13)")
	if which == bare {
		return
	}
	if s.sealed = s.policy.sealed; s.sealed {
		db := fence(s, s.dsns[fenced], s.policy.rules...)
		defer db.Close()
		if err := sealing.Seal(context.Background(), db); err != nil {
			s.Fatal(err)
		}
	}
}

// An effect is what a statement answers and leaves.
type effect struct {
	err      error
	affected int64
	left     map[string]stored
	pens     string
}

// do runs a statement by one of the connections, and undoes it.
func (s *session) do(ctx context.Context, which int, query string, args ...any) (e effect) {
	var q executor = s.conns[which]
	if s.inTx {
		tx, err := s.conns[which].BeginTx(context.Background(), nil)
		if err != nil {
			s.Fatal(err, s.description)
		}
		defer tx.Rollback()
		q = tx
	}
	var r sql.Result
	if r, e.err = q.ExecContext(ctx, query, args...); e.err == nil {
		e.affected, _ = r.RowsAffected()
	}
	if !s.inTx {
		exec(s, q, "COMMIT")
		defer s.fill(which)
	}
	e.left = table(s.T, s.admin, s.names[which])
	const pens = "SELECT COALESCE(GROUP_CONCAT(CONCAT_WS(',', id, grp, price) ORDER BY id SEPARATOR ';'), '') FROM "
	if err := s.admin.QueryRowContext(context.Background(), pens+s.names[which]+".pens").Scan(&e.pens); err != nil {
		s.Fatal(err)
	}
	return e
}

// one writes at random, by both drivers.
func (s *session) one() {
	query, touch := s.statement()
	args, c := s.args(query), s.caller(s.policy)
	before := table(s.T, s.admin, s.names[bare])
	want := s.do(context.Background(), bare, query, args...)
	after := want
	if touch != "" && touch != query {
		after = s.do(context.Background(), bare, touch, args...)
	}
	got := s.do(c.context(), fenced, query, args...)
	v := verdict{session: s, query: query, caller: c, before: before, want: want, got: got}
	for _, id := range sortedIDs(before) {
		row, is := after.left[id]
		if why := s.policy.forbids(c, s.newest, before[id]); why != "" && (!is || row.touched || changes(before[id], row)) {
			v.forbidden = append(v.forbidden, "row "+id+": "+why)
		}
	}
	v.known = after.err == nil && want.err == nil
	if fault := v.fault(); fault != "" {
		s.Errorf("%s\n%s\n%s %v by %+v, the ledger has %v\nforbidden %q\nbefore %s\nbare   %d %v%s %s\nfenced %d %v%s %s", fault, s.description, query, args, c, s.newest,
			v.forbidden, show(before), want.affected, want.err, show(want.left), want.pens, got.affected, got.err, show(got.left), got.pens)
	}
}

func changes(a, b stored) bool { return a.isbn != b.isbn || a.rest != b.rest }

// A verdict compares what both drivers did.
type verdict struct {
	*session
	query     string
	caller    caller
	before    map[string]stored
	want, got effect
	forbidden []string // what of the rows that the statement reaches is not the caller's
	known     bool     // these are all
}

// fault returns what is wrong; empty for nothing.
func (v *verdict) fault() string {
	got, want := v.got, v.want
	switch unchanged := show(got.left) == show(v.before); {
	case got.err != nil && !unchanged:
		return "CHANGED, and an error"
	case got.err == nil && v.landed() != "":
		return v.landed()
	case errors.Is(got.err, sqlfence.ErrUnguardable):
		v.tally["refused"]++
	case want.err != nil && got.err == nil:
		return "the bare one fails"
	case want.err != nil && !isTyped(got.err) && number(got.err) != number(want.err):
		return "another error"
	case want.err != nil || !v.known:
		v.tally["errors"]++
	case len(v.forbidden) > 0 && got.err == nil && v.dependsOnThePlan():
	case len(v.forbidden) > 0 && got.err == nil:
		return "nothing was written, in silence"
	case len(v.forbidden) > 0 && !isTyped(got.err) && !v.mayBeRefused():
		return "an error that says nothing"
	case len(v.forbidden) > 0:
		v.tally["forbidden"]++
	case got.err == nil:
		v.tally["written"]++
		return v.differs()
	case v.mayBeRefused():
		v.tally["out of scope"]++
	default:
		return "an error"
	}
	return ""
}

// safeUpdates is the error of a write that uses no index, under sql_safe_updates.
const safeUpdates = 1175

// mayBeRefused reports whether an error is right though the caller may write all the rows that are reached.
func (v *verdict) mayBeRefused() bool {
	inserts := !strings.HasPrefix(v.query, "UPDATE") && !strings.HasPrefix(v.query, "DELETE")
	switch err := v.got.err; {
	case number(err) == safeUpdates && strings.Contains(v.query, "pens"): // by the plan
		return true
	case !isTyped(err):
		return false
	case v.dependsOnThePlan():
		return true
	case v.policy.lacksToken(v.caller, v.newest), inserts && v.policy.key != "", inserts && v.policy.once: // a row that it has written itself
		return true
	case v.caller.serial >= 0 && errors.Is(err, sqlfence.ErrGone):
		return true
	case strings.HasPrefix(v.query, "DELETE") && strings.Contains(v.query, "LIMIT"):
		for _, row := range v.before { // beyond the limit
			if v.policy.forbids(v.caller, v.newest, row) != "" {
				return true
			}
		}
	}
	return false
}

// landed says what was written that the caller may not write; empty for nothing.
func (v *verdict) landed() string {
	p, c := v.policy, v.caller
	for id, row := range v.before {
		now, is := v.got.left[id]
		token, held := c.tokens[p.tokenName(row)]
		switch why := p.forbids(c, v.newest, row); {
		case is && !changes(row, now) && now.mark == row.mark:
		case why != "":
			return "LANDED: row " + id + ": " + why
		case is && p.fence && (!held || now.mark != token):
			return "row " + id + " has another mark"
		case is && p.serial && changes(row, now) && now.serial <= row.serial:
			return "row " + id + " has its old serial"
		case is && p.lock && now.lock != row.lock:
			return "row " + id + " has another lock"
		}
	}
	for id, now := range v.got.left {
		if _, was := v.before[id]; was || !p.fence && !p.ledger {
			continue
		}
		token, held := c.tokens[p.tokenName(now)]
		switch {
		case p.free && (now.mark == 0 || len(id) > 1): // its key doesn't show, or the database has chosen it
		case !held:
			return "LANDED: the new row " + id + " has a key without a token"
		case p.ledger && token != v.newest[p.tokenName(now)]:
			return "LANDED: the new row " + id + ": another token in the ledger"
		case p.fence && now.mark != token:
			return "the new row " + id + " has another mark"
		case p.serial && now.serial < 1:
			return "the new row " + id + " has no serial"
		}
	}
	return ""
}

// assignsPens finds an item of a SET list for the other one of the joined tables.
var assignsPens = regexp.MustCompile(` SET (?:.*, )?p\.(?:grp|price) = `)

// dependsOnThePlan reports whether the servers themselves do now this and now that: they may join by what they
// have just assigned, or assign all columns at the end, in MySQL also where a subquery becomes a join; and a
// new row's id is another one.
func (v *verdict) dependsOnThePlan() bool {
	_, where, _ := strings.Cut(v.query, " WHERE ")
	joined := strings.Contains(v.query, "pens p") && (v.policy.sealed || assignsPens.MatchString(v.query))
	return strings.HasPrefix(v.query, "UPDATE") && (joined || strings.Contains(where, "FROM pens")) || strings.Contains(v.query, "LAST_INSERT_ID")
}

// differs says what the bare driver did otherwise.
func (v *verdict) differs() string {
	if v.dependsOnThePlan() {
		return ""
	}
	if v.want.pens != v.got.pens {
		return "other pens"
	}
	if len(v.want.left) != len(v.got.left) {
		return "other rows"
	}
	for id, row := range v.want.left {
		if now, is := v.got.left[id]; !is || changes(row, now) {
			return "row " + id + " is another"
		}
	}
	counts := strings.Contains(v.options, "found") && !strings.Contains(v.query, "DUPLICATE") || !strings.Contains(v.query, "UPDATE")
	if counts && v.want.affected != v.got.affected {
		return "other counts"
	}
	return ""
}
