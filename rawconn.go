package sqlfence

import "database/sql/driver"

// BaseConn returns the base driver's connection from the value that sql.Conn.Raw passes to its function:
//
//	err := conn.Raw(func(c any) error {
//		pg := sqlfence.BaseConn(c).(*stdlib.Conn).Conn() // a *pgx.Conn
//		...
//	})
//
// It unwraps wrappers with a method Raw() driver.Conn, such as otelsql's, and returns other connections unchanged.
// Calls on the connection aren't guarded, and must end before the function returns.
func BaseConn(driverConn any) any {
	for {
		wrapper, ok := driverConn.(interface{ Raw() driver.Conn })
		if !ok {
			return driverConn
		}
		base := wrapper.Raw()
		if base == nil {
			return driverConn
		}
		driverConn = base
	}
}
