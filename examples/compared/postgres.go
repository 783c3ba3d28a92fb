package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/removal"
)

// patience is how long the server may take to end a session, in milliseconds.
const patience = "120000"

// openPostgres makes a schema, and a role for the processes, because the owner of a table and
// a superuser are exempt from row-level security.
func openPostgres(ctx context.Context, dsn string) (*database, error) {
	owner, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	name := "sqlfence_compared_" + strings.ToLower(rand.Text()[:10])
	owner.RuntimeParams["search_path"] = name
	admin := stdlib.OpenDB(*owner)
	for _, query := range []string{"CREATE SCHEMA " + name, "CREATE ROLE " + name, "GRANT USAGE ON SCHEMA " + name + " TO " + name} {
		if _, err := admin.ExecContext(ctx, query); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", query, err), admin.Close())
		}
	}

	traffic := new(traffic)
	app := owner.Copy()
	app.RuntimeParams["role"] = name
	app.RuntimeParams["application_name"] = name
	app.RuntimeParams["lock_timeout"] = "200ms"
	app.Tracer = traffic
	app.DialFunc = traffic.dial
	return &database{
		name: "PostgreSQL, driver pgx", cost: "round trips", admin: admin,
		approaches: []approach{
			nothing, rowLock,
			advisoryLock("advisory lock, writes by the pool", func(p *process) sender { return p.db }),
			advisoryLock("advisory lock, writes on its session", func(p *process) sender { return p.session }),
			version, triggerOnColumn(columnTrigger, createTrigger),
			inTransaction("trigger on a setting", "", addToken, settingTrigger, createTrigger),
			inTransaction("row-level security", "fence_token = ", append([]string{addToken}, policies...)...),
			fenced("sqlfence, RowFence", sqlfence.RowFence("fence_token")),
			fenced("sqlfence, Ledger", sqlfence.Ledger()),
			fenced("sqlfence, both", sqlfence.RowFence("fence_token"), sqlfence.Ledger()),
		},
		bare: func() (*sql.DB, error) { return stdlib.OpenDB(*app), nil },
		fenced: func(opts ...sqlfence.Option) (*sql.DB, error) {
			return sqlfence.OpenDB(stdlib.GetConnector(*app), opts...)
		},
		reset: []string{
			// The last approach's sessions may still be closing; this waits for them.
			"SELECT pg_terminate_backend(pid, " + patience + ") FROM pg_stat_activity WHERE application_name = '" + name + "'",
			"DROP TABLE IF EXISTS books, fencing_tokens", "DROP FUNCTION IF EXISTS check_token",
			"ALTER DEFAULT PRIVILEGES IN SCHEMA " + name + " GRANT ALL ON TABLES TO " + name,
		},
		counted:    func() (int, int) { return int(traffic.statements.Load()), int(traffic.turns.Load()) },
		costs:      func(statements, turns int) string { return fmt.Sprintf("%d, %d", statements, turns) },
		endSession: func(ctx context.Context, p *process) error { return endSession(ctx, admin, p) },
		drop: func() error {
			ctx, cancel := removal.Context()
			defer cancel()
			_, err := admin.ExecContext(ctx, "DROP SCHEMA "+name+" CASCADE; DROP ROLE "+name)
			return errors.Join(err, admin.Close())
		},
	}, nil
}

// rowLock holds the rows in a transaction for as long as the work takes.
var rowLock = approach{
	name: "SELECT FOR UPDATE, held while it works", locks: true, each: true,
	hold: func(ctx context.Context, p *process) (err error) {
		if p.tx != nil {
			_ = p.tx.Rollback()
		}
		if p.tx, err = p.db.BeginTx(ctx, nil); err != nil {
			return err
		}
		if _, err = p.tx.ExecContext(ctx, "SELECT price FROM books FOR UPDATE"); err != nil {
			_ = p.tx.Rollback()
		}
		return err
	},
	write: func(ctx context.Context, p *process, s statement) (int64, error) {
		n, err := send(ctx, p.tx, s)
		return n, errors.Join(err, p.tx.Commit())
	},
}

// advisoryLock holds a lock by a session, and writes by what to returns.
func advisoryLock(name string, to func(*process) sender) approach {
	return approach{
		name: name, locks: true,
		hold: func(ctx context.Context, p *process) (err error) {
			if p.session != nil {
				_ = p.session.Close()
			}
			if p.session, err = p.db.Conn(ctx); err != nil {
				return err
			}
			var got bool
			if err := p.session.QueryRowContext(ctx, "SELECT pg_try_advisory_lock(1)").Scan(&got); err != nil || got {
				return err
			}
			return errHeld
		},
		write: func(ctx context.Context, p *process, s statement) (int64, error) { return send(ctx, to(p), s) },
	}
}

const (
	createTrigger = "CREATE TRIGGER check_token BEFORE UPDATE OR DELETE ON books FOR EACH ROW EXECUTE FUNCTION " +
		"check_token()"

	columnTrigger = `CREATE FUNCTION check_token() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; -- which brings no token along
		IF NEW.fence_token < OLD.fence_token THEN RAISE EXCEPTION 'stale token %', NEW.fence_token; END IF;
		RETURN NEW;
	END $$`

	settingTrigger = `CREATE FUNCTION check_token() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE given bigint := NULLIF(current_setting('app.token', true), '')::bigint;
	BEGIN
		IF given IS NULL OR given < OLD.fence_token THEN RAISE EXCEPTION 'stale token %', given; END IF;
		IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
		NEW.fence_token := given;
		RETURN NEW;
	END $$`
)

var policies = []string{
	"ALTER TABLE books ENABLE ROW LEVEL SECURITY",
	"CREATE POLICY read ON books FOR SELECT USING (true)",
	"CREATE POLICY change ON books FOR UPDATE USING (fence_token <= NULLIF(current_setting('app.token', true), " +
		"'')::bigint)",
	"CREATE POLICY remove ON books FOR DELETE USING (fence_token <= NULLIF(current_setting('app.token', true), " +
		"'')::bigint)",
}

// inTransaction passes the token to the server in a transaction's setting. If assigns isn't empty, the statement also
// writes the token into a column.
func inTransaction(name, assigns string, create ...string) approach {
	return approach{
		name: name, create: create,
		hold: func(context.Context, *process) error { return nil },
		write: func(ctx context.Context, p *process, s statement) (int64, error) {
			tx, err := p.db.BeginTx(ctx, nil)
			if err != nil {
				return 0, err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT set_config('app.token', '%d', true)", p.token)); err != nil {
				return 0, err
			}
			if assigns != "" {
				s = s.setting(fmt.Sprintf("%s%d", assigns, p.token))
			}
			n, err := send(ctx, tx, s)
			if err != nil {
				return 0, err
			}
			return n, tx.Commit()
		},
	}
}

// endSession makes the server end the session with p's lock, as after a failover, a timeout or a dead connection.
func endSession(ctx context.Context, admin *sql.DB, p *process) error {
	var row *sql.Row
	if p.tx != nil {
		row = p.tx.QueryRowContext(ctx, "SELECT pg_backend_pid()")
	} else {
		row = p.session.QueryRowContext(ctx, "SELECT pg_backend_pid()")
	}
	var pid int
	if err := row.Scan(&pid); err != nil {
		return err
	}
	// It waits until the session has ended.
	_, err := admin.ExecContext(ctx, fmt.Sprintf("SELECT pg_terminate_backend(%d, "+patience+")", pid))
	return err
}

// traffic counts the statements that pgx sends, and the round trips.
type traffic struct{ statements, turns atomic.Int64 }

func (t *traffic) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.statements.Add(1)
	return ctx
}

func (t *traffic) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t *traffic) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return &countingConn{Conn: c, traffic: t}, err
}

// A countingConn counts a round trip where something is read after something was written.
type countingConn struct {
	net.Conn
	traffic *traffic
	wrote   atomic.Bool
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(p)
}

func (c *countingConn) Read(p []byte) (int, error) {
	if c.wrote.Swap(false) {
		c.traffic.turns.Add(1)
	}
	return c.Conn.Read(p)
}
