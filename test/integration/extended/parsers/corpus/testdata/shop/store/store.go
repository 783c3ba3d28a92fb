// Package store is an example of how real programs write SQL.
package store

import (
	"database/sql"
	"fmt"

	n "shop.example/names"
)

// inGo is what sqlc writes.
const inGo = `-- name: InGo :exec
DELETE FROM readers WHERE id = $1
`

var where = " WHERE id = ?"

func writes(db *sql.DB, table, cond string, price int) {
	db.Exec("INSERT INTO " + Books + " (" + columns + ") VALUES ($1, $2)")
	db.Exec(`insert into books (ISBN,   title) -- twice
		values (?, ?)`)
	db.Exec("UPDATE books SET price = ?"+where, price, 1)
	db.Exec(fmt.Sprintf("DELETE FROM %s WHERE price > %d", table, price))
	db.Exec(fmt.Sprintf("DELETE FROM books WHERE %s", cond))
	db.Exec("UPDATE " + n.Prices + " SET price = $1 WHERE book_id = $2")
	db.Exec(prefixed("DELETE FROM %sbooks WHERE id = ?", table))
	query := "UPDATE books SET title = $1"
	if price > 0 {
		query += " WHERE price > 0"
	}
	db.Exec(query)
	db.Exec("SELECT title FROM books")
	fmt.Errorf("update books set price: %w", sql.ErrNoRows)
	db.Exec("INSERT INTO prices SELECT * FROM books")
	db.Exec("UPDATE books SET price = 1; DELETE FROM prices")
	db.Exec("update the price")
	db.Exec("delete from cache")
}

func prefixed(format, prefix string) string { return fmt.Sprintf(format, prefix) }

func mysqlOnly(db *sql.DB) {
	db.Exec("UPDATE books SET price = 5")
}

func migrateToV2(db *sql.DB) {
	db.Exec("UPDATE books SET price = 6")
}
