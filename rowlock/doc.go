// Package rowlock keeps locks that people hold while they edit a row: who edits
// it, since when, and until when, in three columns of the row. Whoever else wants
// to edit it is told before the work, not after.
//
//	invoices, err := rowlock.New(db, "invoice")
//	edit := rowlock.Edit{ID: 7, User: "ada"}
//	lock, err := invoices.LoadLocked(ctx, edit, "customer, total", &customer, &total)
//	var locked *sqlfence.LockedError
//	if errors.As(err, &locked) { ... } // locked.By has been editing since locked.Since
//
//	edit.Serial = lock.Serial // the version that the user now edits at leisure
//	err = invoices.SaveRelease(ctx, edit, func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE invoice SET total = $1, serial = serial + 1 WHERE id = 7", total)
//		return err
//	})
//
// # What it is not
//
// The lock is a courtesy among those who ask for it. What keeps a change from
// being lost is the row's version, which every write raises and which every method
// here that matters compares: a write without a lock, by a batch job or after the
// lock has lapsed, makes the next request and the next save of an older version
// fail with a [*sqlfence.ConflictError].
//
// A lock is no fencing token and no mutex: it lapses by the clock, and it belongs
// to a user, in however many windows.
//
// # The columns
//
// The table has an integer version, which is never NULL, and the three columns of
// the lock, which may be NULL:
//
//	serial       bigint NOT NULL DEFAULT 1
//	editedby     text or integer   -- the user's id; NULL, 0 or '' is nobody
//	editedsince  timestamptz       -- SQLite: integer, milliseconds since 1970, UTC
//	editedexpiry timestamptz       -- SQLite: likewise
//
// A lock is held where editedby names someone and editedexpiry is later than now.
// Now is the database's clock, at the time of the statement; no client's counts.
// If that clock is set back or forth, locks live longer or shorter, and the version
// protects as before. None of the lock's statements changes the version.
//
// A request waits while another transaction is changing the row; its context bounds
// that. Nothing waits for the end of somebody's editing.
//
// # Databases
//
// PostgreSQL and SQLite (3.38 or later), through any driver, fenced by sqlfence or
// not. On a fenced database the statements run under [sqlfence.Bypass], with a
// reason that starts with "rowlock: ". SQLite needs a busy_timeout where there is
// more than one writer.
//
// A [Manager] adds the table
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
// where {time} is timestamptz, in SQLite bigint.
package rowlock
