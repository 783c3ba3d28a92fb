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
// separate database. It logs the results of each step: values with their Go types, errors with the types of all errors
// that they wrap, column types, affected rows, pool statistics. The logs must be equal. Each check is made twice: with
// nothing registered, and, as ".../registered", with its table registered and a token in the context.
//
// Fencing: sqlfence's guarantees hold on this driver for each method that sends a statement, such as Exec, Query and
// the methods of prepared statements and transactions.
//
// A failed check prints its explanation. [Report] has the outcome of each check, which can go into the driver's
// documentation.
//
// The suite doesn't test the driver itself: a result of the driver alone counts as right. Nor does the suite test how
// sqlfence parses SQL, because parsing doesn't depend on the driver.
package conformance
