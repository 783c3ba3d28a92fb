package store

const (
	Books   = "books"
	columns = "isbn, title"
)
