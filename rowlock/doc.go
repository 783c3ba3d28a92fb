// Package rowlock keeps the locks that people take while they edit a row. Three columns
// of the row say who edits it, since when and until when, so that a second person learns
// of the first before the work, not after.
//
//	invoices, err := rowlock.New(db, "invoice")
//	edit := rowlock.Edit{ID: 7, User: "ada"}
//	lock, err := invoices.LoadLocked(ctx, edit, "customer, total", &customer, &total)
//	var locked *sqlfence.LockedError
//	if errors.As(err, &locked) { ... } // locked.By has been editing since locked.Since
//
//	edit.Serial = lock.Serial // the version that the user now edits
//	err = invoices.SaveRelease(ctx, edit, func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = $1, serial = serial + 1 WHERE id = 7", total)
//		return err
//	})
//
// # What it is not
//
// The lock binds only those who ask for it. The row's version is what prevents lost updates: every
// write raises it, and Request, Renew and the saves compare it. After a write without a lock, by a
// batch job or a user with a lapsed lock, the next request and the next save of an older version
// fail with a [*sqlfence.ConflictError]. The rule [sqlfence.EditLock] makes the lock bind all
// writes to the table.
//
// A lock is no fencing token and no mutex: it lapses by the clock, and it belongs to a
// user, who may edit the row in several windows.
//
// # The columns
//
// The table has an integer version, which is never NULL, and the three columns of
// the lock, which may be NULL:
//
//	serial       bigint NOT NULL DEFAULT 1
//	editedby     text or integer   -- the user's ID; NULL, 0 or '' is no holder
//	editedsince  timestamptz       -- SQLite: integer, milliseconds since 1970, UTC
//	editedexpiry timestamptz       -- SQLite: as editedsince
//
// On MySQL and MariaDB the two times are bigint, microseconds since 1970, UTC: a DATETIME has no
// time zone.
//
// A lock is live if editedby names a user and editedexpiry is later than now. Now is the database's
// clock at the time of the statement; clients' clocks don't matter. If the database's clock is
// changed, locks live longer or shorter, and the version protects as before. No statement of this
// package changes the version.
//
// A text in editedby that spells the number 0, such as '0' or '00', is no holder either, and no
// user may have such an ID: a column of integers would store 0 for it.
//
// A request waits while another transaction is changing the row; its context bounds that. Nothing
// waits for a user to finish editing.
//
// # Databases
//
// PostgreSQL, SQLite (3.38 or later), MariaDB (10.6 or later) and MySQL (8.0.16 or later), through
// any driver, fenced by sqlfence or not. A fenced database sends this package's statements as they
// are, and its observers and its log don't hear of them; what the application does in a save is
// guarded. SQLite needs a busy_timeout if several processes or connections write. On MySQL and
// MariaDB each method is a transaction of a few statements, at READ COMMITTED unless it is the
// caller's; tables are InnoDB's; users and keys are compared byte by byte; and names of tables and
// columns are read in lower case.
//
// A [Manager] uses the table
//
//	CREATE TABLE IF NOT EXISTS rowlocks (
//		table_name text NOT NULL,
//		row_key    text NOT NULL,
//		user_id    text NOT NULL,
//		session    text NOT NULL,
//		since      {time} NOT NULL,
//		expiry     {time} NOT NULL,
//		heartbeat  {time} NOT NULL,
//		PRIMARY KEY (table_name, row_key)
//	)
//
// where {time} is timestamptz, in SQLite bigint, and on MySQL and MariaDB
//
//	CREATE TABLE IF NOT EXISTS rowlocks (
//		table_name varbinary(520)  NOT NULL,
//		row_key    varbinary(2500) NOT NULL CHECK (LENGTH(row_key) < 2500),
//		user_id    varbinary(2500) NOT NULL CHECK (LENGTH(user_id) < 2500),
//		session    varbinary(2500) NOT NULL CHECK (LENGTH(session) < 2500),
//		since      bigint NOT NULL,
//		expiry     bigint NOT NULL,
//		heartbeat  bigint NOT NULL,
//		PRIMARY KEY (table_name, row_key)
//	) ENGINE=InnoDB
//
// with times in microseconds since 1970.
package rowlock
