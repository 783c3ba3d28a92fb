// Package basedriver has all that is specific to database/sql drivers. sqlfence imports no driver, so the package has a
// list of facts about drivers, and uses reflection over their types and in one place unsafe. No other package of the
// root module uses reflection or unsafe. The package knows nothing of fences.
//
// What each file is for:
//
//   - known.go: an application needs no WithDialect for known drivers, even inside of a wrapper. Facts about these
//     drivers save a round trip or a wrong error.
//   - call.go: a driver with the interfaces of Go 1.0 works as it does with database/sql.
//   - argument.go: the key of a row and the ID of an editor are known before the statement is sent, for any type of
//     the argument.
//   - errors.go: errors of a database have a code, in a field or method that depends on the driver.
//   - liveness.go, network.go and the socket files: a connection that the server has closed is found before a guarded
//     write is sent on it, without a round trip. Otherwise the first write of each pooled connection after a restart
//     of the server would be an unknown outcome. lib/pq has its network connection in an unexported field, which needs
//     the one use of unsafe.
//   - pgx.go: a query rewriter of pgx, such as NamedArgs, runs before the statement is planned, so that the guard is
//     added to the SQL that pgx would send.
//   - prepared.go: if pgx would read a string as the name of a prepared statement, sqlfence plans that statement. pgx
//     keeps prepared statements, and a batch's COMMIT (pgx.go), in unexported fields.
//   - notification.go: a waiter for a lease listens on a connection of the pool, without code for the driver in the
//     application.
//   - scanner_go1.27.go: guarded rows keep the driver's RowsColumnScanner.
package basedriver
