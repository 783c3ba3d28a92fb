// Package conformance tells whether sqlfence works around a database/sql
// driver. It is for the author of a driver, or of a wrapper, who need not ask
// sqlfence's authors: it imports the standard library and sqlfence only.
//
//	func TestSQLFence(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Connector: newDatabase,                                                 // a fresh, empty one each time
//			Options:   []sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)}, // for a driver it doesn't know
//		})
//	}
//
// The checks come in two halves.
//
// Transparency: the same steps are taken with the driver alone and with sqlfence
// around it, each on a database of its own. What each step shows is written to a
// log: values with their Go types, errors with the types of all that they wrap,
// column types, affected rows, pool statistics. The logs must be equal. Each
// check is made twice: with nothing registered, and, as ".../registered", with
// the table that it uses registered and a token in the context.
//
// Fencing: the guarantees that sqlfence makes hold on this driver, by every way
// of sending a statement.
//
// A check that fails prints what it is about. [Report] has the outcome of each,
// for a table in the driver's documentation.
//
// It doesn't test the driver itself: what the driver alone answers is right by
// definition. Nor does it test sqlfence's reading of SQL, which is no matter of
// the driver.
package conformance
