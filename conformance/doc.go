// Package conformance tests whether sqlfence works around a database/sql driver. Authors of drivers and wrappers can
// check compatibility with it. Package conformance is a separate module, which imports only the standard library and
// sqlfence.
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
// Transparency: the suite takes the same steps with the driver alone and with sqlfence around the driver, each on a
// separate database. It logs the results of each step: values with their Go types, errors with the types of all that
// they wrap, column types, affected rows, pool statistics. The logs must be equal. Each check is made twice: with
// nothing registered, and, as ".../registered", with the table that it uses registered and a token in the context.
//
// Fencing: sqlfence's guarantees hold on this driver, by every way of sending a
// statement.
//
// A check that fails prints its explanation. [Report] has the outcome of each check, for
// a table in the driver's documentation.
//
// The suite doesn't test the driver itself: the results of the driver alone are right by
// definition. Nor does it test how sqlfence reads SQL, which doesn't depend on the
// driver.
package conformance
