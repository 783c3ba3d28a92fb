package sqltext

// SQLiteDeleted is what SQLite's mark is below for a row to be deleted: minus it and the
// token. All tokens are less than it, and it is a number that all languages have.
const SQLiteDeleted = "1000000000000000"

// SQLiteSeal begins the names of a sealed table's triggers in SQLite, and SQLiteUnsealed
// those that keep negative marks out of one which was sealed. The table's name is behind it.
const (
	SQLiteSeal     = "sqlfence_seal_"
	SQLiteUnsealed = "sqlfence_unsealed_"

	// SQLiteSealDeletes begins the name of the trigger that deletes a row which is marked.
	SQLiteSealDeletes = SQLiteSeal + "deleted_"

	// SQLiteSealState is a table that the triggers write to, in each file that has a seal.
	SQLiteSealState = "sqlfence_seal"
)
