package sqlfence

import "database/sql/driver"

// BaseConn returns the base driver's connection for what sql.Conn.Raw gives its
// function: a fenced connection is of no type that the driver exports.
//
//	err := conn.Raw(func(c any) error {
//		pg := sqlfence.BaseConn(c).(*stdlib.Conn).Conn() // a *pgx.Conn
//		...
//	})
//
// It also looks into connections above and beneath the fence that have a method
// Raw() driver.Conn, such as otelsql's; any other connection is returned as it is, so code
// may call BaseConn whether its database is fenced or not.
//
// What is done with the connection isn't guarded, and the observer gets a [RawAccess]
// event. The connection must not be used after the function has returned.
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
