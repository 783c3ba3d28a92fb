// Package rowlock keeps the locks that people take while they edit a row. Three columns of the row store who edits the
// row, since when and until when. So a second person learns about the first before editing the same row.
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
// # Limits
//
// The lock binds only programs that request it, unless the table has the rule [sqlfence.EditLock]. The row's version
// prevents lost updates: every write of the program must increment it, and the methods refuse a row at another version
// with a [*sqlfence.ConflictError]. A lock isn't a fencing token: it expires by the clock, and its user may edit the
// row in several windows.
//
// # The columns
//
//	serial       bigint NOT NULL DEFAULT 1
//	editedby     text or integer   -- the user's ID; NULL, 0 or '' is no holder
//	editedsince  timestamptz       -- SQLite: integer, milliseconds since 1970; MySQL: bigint, microseconds
//	editedexpiry timestamptz       -- as editedsince
//
// A lock is live if editedby names a user and editedexpiry is later than the database's clock; otherwise it has lapsed.
// A user holds the row's lock while it is live. The package never changes the version. Methods wait while another
// transaction changes the row.
//
// Methods also return the errors of their context and of the database. The package works on PostgreSQL, SQLite (3.38 or
// later), MariaDB (10.6 or later) and MySQL (8.0.16 or later), with any driver; db need not be fenced. Set a
// busy_timeout on SQLite. docs/rowlock.md describes each database.
package rowlock
