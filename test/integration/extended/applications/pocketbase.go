package main

var pocketbase = application{
	name:     "PocketBase",
	module:   "github.com/pocketbase/pocketbase",
	version:  "v0.36.8",
	database: "SQLite (modernc), dbx",
	edits: []edit{
		{"core/db_connect.go", "import (\n", "import (\n\tfenced \"%s\"\n"},
		{"core/db_connect.go", `dbx.Open("sqlite", dbPath+pragmas)`, `dbx.NewFromDB(fenced.MustOpen("sqlite", dbPath+pragmas), "sqlite"), error(nil)`},
	},
	note:   "The statement that is refused isn't SQL: a test expects it to fail.",
	tables: []string{"_collections", "_params", "_externalAuths", "_mfas", "_otps", "_authOrigins", "_superusers"},
	tests:  "core",

	columns: "^(TestSaveView|TestTableColumns|TestTableInfo)(/|$)",
}
