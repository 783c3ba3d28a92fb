package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	sealing "github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const lockedBooks = `CREATE TABLE %s.books (
	id bigint AUTO_INCREMENT PRIMARY KEY, isbn varchar(20) UNIQUE, grp int NOT NULL DEFAULT 0,
	price int NOT NULL DEFAULT 0, title varchar(40) DEFAULT 'none', touched int NOT NULL DEFAULT 0,
	fence_token bigint, serial bigint, lock_by varchar(20), lock_since bigint, lock_expiry bigint, KEY (grp)) ENGINE=InnoDB AUTO_INCREMENT=10`

// TestRandomSessions makes random callers write under random rules, settings of the session and options of the driver.
// In every case a write to a row that its caller may not write fails without effect. Any other write has the same
// effect as on the bare driver and a table without rules, or is refused before it is sent.
//
// A failure names its seed: SQLFENCE_SEED=n SQLFENCE_ROUNDS=1 runs that session alone.
func TestRandomSessions(t *testing.T) {
	w := newWorld(t)
	seed, count := harness.Seed(t), harness.Rounds(t, 100)
	for n := range count {
		w.session(seed + uint64(n))
	}
	t.Logf("seeds from %d: %v", seed, w.tally)
	if count >= 100 && min(w.tally["written"], w.tally["forbidden"]) < count/2 {
		t.Errorf("too few of a kind: %v", w.tally)
	}
}

// A world holds two databases with the same content: a fenced database and a plain one.
type world struct {
	*testing.T
	dsns, names [2]string
	admin       *sql.Conn // reads uncommitted rows
	knobs       []knob
	tally       map[string]int
	sealed      bool // like the fenced table
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
	for _, s := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET lock_wait_timeout = 120", "SET innodb_lock_wait_timeout = 120"} {
		exec(t, w.admin, s)
	}
	w.create(bare)
	w.create(fenced)
	return w
}

// create recreates the books, because a sealed table doesn't accept the rows from any other statement.
func (w *world) create(which int) {
	exec(w, w.admin, "DROP TABLE "+w.names[which]+".books")
	exec(w, w.admin, fmt.Sprintf(lockedBooks, w.names[which]))
}

const bare, fenced = 0, 1

// A session holds the random choices of one seed.
type session struct {
	*world
	random
	policy      policy
	options     string
	settings    []string
	inTx        bool
	conns       [2]*sql.Conn
	rows        []string // the rows of books in INSERT's syntax
	newest      map[string]int64
	trigger     string // an application's trigger; empty for none
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
	if s.IntN(4) == 0 {
		s.trigger = s.pick("BEFORE UPDATE ON %s.books FOR EACH ROW SET NEW.touched = NEW.touched", "BEFORE UPDATE ON %s.books FOR EACH ROW SET @app = OLD.id",
			"BEFORE INSERT ON %s.books FOR EACH ROW SET NEW.title = COALESCE(NEW.title, 'new')", "AFTER UPDATE ON %s.books FOR EACH ROW SET @app = NEW.id",
			"AFTER INSERT ON %s.books FOR EACH ROW SET @app = NEW.id", "BEFORE DELETE ON %s.books FOR EACH ROW SET @app = OLD.id")
	}
	s.description = fmt.Sprintf("seed %d, rules%s, in a transaction %v, options %s, settings %s, trigger %s", seed, s.policy.name, s.inTx, s.options, strings.Join(s.settings, "; "), s.trigger)
	s.invent()
	s.fill(bare)
	s.fill(fenced)
	for range 6 {
		s.one()
	}
}

// set changes both sessions by statements that the fenced one accepts.
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

// invent chooses six rows and the ledger's tokens, mostly such as the caller is likely to have.
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
		if by == "''" && strings.Contains(s.description, "ORACLE") { // MariaDB stores NULL for '' in this mode
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

// fill stores the chosen rows in one of the databases.
func (s *session) fill(which int) {
	books := s.names[which] + ".books"
	if which == fenced && (s.sealed || s.policy.sealed) {
		s.create(which)
	} else {
		exec(s, s.admin, "DELETE FROM "+books)
	}
	exec(s, s.admin, "DROP TRIGGER IF EXISTS "+s.names[which]+".app")
	if s.trigger != "" {
		exec(s, s.admin, fmt.Sprintf("CREATE TRIGGER "+s.names[which]+".app "+s.trigger, s.names[which]))
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

// An effect is a statement's result with the rows after it.
type effect struct {
	err      error
	affected int64
	left     map[string]stored
	pens     string
}

// do runs a statement on one of the connections, and rolls it back.
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

// one runs one random write on both connections.
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
