package advise

// These codes tell why a readable statement can't be guarded.
const (
	AssignsFence Code = "it assigns the fence column, which only sqlfence writes; leave the column out"
	AssignsKey   Code = "it assigns the key column a value that may be another key, which would move the row out " +
		"of its token's scope; leave the column out, or assign the row's own key as an argument or as a plain " +
		"constant"
	AssignsSerial Code = "under WithSerial a statement can't assign the serial column; leave the column out: it " +
		"rises by itself"
	AfterAnalyze Code = "drivers don't find the end of what ANALYZE answers to a statement with arguments; " +
		"write the statement alone, or EXPLAIN it"
	AfterPrepare Code = "a write can't be guarded behind PREPARE; send it by itself, or prepare it by the " +
		"driver, as database/sql's Prepare does"
	AfterSetStatement Code = "a write can't be guarded behind SET STATEMENT; set the variable for the session, " +
		"and write it as a statement of its own"
	ChangesEncoding Code = "it may change %s, which decides how later statements are read; sqlfence needs %s"
	CodeEscapes     Code = "a name spelled with escapes isn't supported in code; write it in double quotes"
	CodeMayWrite    Code = "code that may write can't be guarded where all tables are; send its statements one by " +
		"one, or run it under Bypass"
	CodeNames Code = "code that names a registered table in its text can't be guarded; send its statements one " +
		"by one, or run it under Bypass"
	ColumnNamedWith Code = "the condition begins with a column named with, before which no guard can be " +
		"inserted; put the name in quotes"
	CopiesRows Code = "rows that COPY sends can't be guarded; write INSERT ... SELECT unnest($1::bigint[]), ... " +
		"with an array for each column, or use CopyFrom of package fencepgx, or run it under Bypass"
	CountsFound Code = "in a guarded write %s() counts the rows that the guard has queried; read it by SELECT " +
		"%s() before, and write the number"
	CountsRows Code = "under a guard %s() may count otherwise, so that more rows are updated; write LIMIT, or " +
		"select the rows by their keys"
	CutsErrors Code = "in this character_set_results the server cuts off its errors at the first byte, and with " +
		"them why it refused a write; leave it utf8mb4"
	Damaged Code = "with the guard in it the server would read it otherwise; put a blank between its words and " +
		"signs"
	DefinesTables Code = "this table holds the definitions of tables, so a write to it could replace a " +
		"registered one, or switch off its triggers; run it under Bypass"
	DeleteTakesOver Code = "a DELETE takes over no row; present the claims of the rows to delete, or take them " +
		"over by an UPDATE first"
	ExpectedColumns Code = "expected columns here"
	Failed          Code = "sqlfence itself failed to read it: %v; please report that with the statement, and write " +
		"it in another way"
	FenceIsUnique Code = "the fence column is unique"
	FullText      Code = "a full-text condition can't be checked together with the rows' tokens; write WHERE rowid " +
		"IN (SELECT rowid FROM table WHERE ...), with the condition in the query"
	HiddenWrite Code = "a write in this place can't be guarded; write it as a statement of its own, or put it " +
		"into WITH at the top"
	InsertOr      Code = "OR %s may delete other rows or keep part of a failed statement; write INSERT ... %s"
	JoinByColumns Code = "the conditions of NATURAL JOIN and USING don't show which rows are deleted; write JOIN " +
		"... ON"
	JoinedLimit Code = "the guard can't know which rows LIMIT selects of joined tables; select the rows in " +
		"WHERE, by their keys"
	JoinedSerial Code = "under WithSerial the rows are counted, and drivers count those of all joined tables; " +
		"write UPDATE or DELETE of one table, and select its row by its key"
	JoinsTree Code = "it makes a registered table part of an inheritance tree, so that writes to another table " +
		"can reach its rows; run it under Bypass, and register both"
	KeyNotNamed Code = "the rows' keys are unknown before the statement runs; name the key column, and write " +
		"INSERT ... VALUES, or let new rows do without a token, by the rule UnfencedInserts"
	KeyUnknown Code = "the row's key is unknown before the statement runs; pass it as an argument, or write a " +
		"constant, or let new rows do without a token, by the rule UnfencedInserts"
	KeysOverridden Code = "the rows' keys are unknown before the statement runs, as the database may choose " +
		"them; leave OVERRIDING USER VALUE out, or let new rows do without a token, by the rule UnfencedInserts"
	KeysReturned Code = "the rows' keys are unknown before the statement runs; leave RETURNING out, so that they " +
		"are checked as they are stored, or write INSERT ... VALUES, or let new rows do without a token, by the " +
		"rule UnfencedInserts"
	KeysStoredAsOthers Code = "the rows' keys are unknown before the statement runs, or may be stored as others; " +
		"write INSERT ... VALUES, or let new rows do without a token, by the rule UnfencedInserts"
	KeysUnknown Code = "the rows' keys are unknown before the statement runs; write INSERT ... VALUES, or let " +
		"new rows do without a token, by the rule UnfencedInserts"
	LimitedRows Code = "the guard can't know which rows LIMIT selects; select the rows in WHERE, by their keys"
	LoadsRows   Code = "rows of a file can't be guarded; write INSERT, or load another table and write INSERT ... " +
		"SELECT, or run it under Bypass"
	NameFoldsByLocale Code = "how its name is read, and so which tokens it takes, depends on the database's " +
		"encoding; register the table by its name"
	NamedTwice   Code = "it names a column twice, so which value is stored is unknown; name it once"
	NamesFence   Code = "it names the fence column, which only sqlfence writes; leave the column out"
	NoColumnList Code = "the %s column can't be added without a list of columns; name them: INSERT INTO table " +
		"(column, ...)"
	NoValueForKey Code = "the row's key is compared, as it is stored, before a value that stands behind it, and " +
		"none is a placeholder, a plain constant or UUID() and the like; name the key column first and write one " +
		"so, or use RowFence"
	NoValueForLedger Code = "the ledger is asked before a value of the first row, and none of them is a " +
		"placeholder, a plain constant or UUID() and the like; write one so"
	NotRead         Code = "it can't be read: %s"
	NumberByDefault Code = "DEFAULT would set the %s back; %s"
	NumberInRow     Code = "the value for the %s column isn't an expression of its own; write column = value, or %s"
	NumberTwice     Code = "it assigns the %s column twice; %s"
	AmbiguousTable  Code = "without its schema, the table may be one of several that are registered; write its " +
		"schema"
	OtherKind Code = "this kind of statement on a registered table can't be guarded; write UPDATE, DELETE or " +
		"INSERT, or run it under Bypass; a migration belongs on a connection without sqlfence"
	OuterJoin Code = "a DELETE with an outer join can't be guarded, as MariaDB may leave out the rows that fail " +
		"the check; select the rows by NOT EXISTS in WHERE"
	OwnObject Code = "guards and seals rely on the functions and triggers with names that begin with sqlfence; " +
		"packages tokens, lease and schema make and change them; run it under Bypass"
	OwnSchema Code = "it may take away a registered table, or sqlfence's own tables, functions and triggers; run " +
		"it under Bypass"
	OwnSetting Code = "by this setting triggers aren't fired, or don't compare what they should; run it under " +
		"Bypass"
	OwnTable Code = "only sqlfence's packages write to this table or define one of its name; use package tokens, " +
		"lease or rowlock, or run it under Bypass"
	PreparesTransaction Code = "XA PREPARE may release the ledger's lock before the transaction commits, so that " +
		"a newer token could be issued; write XA COMMIT ... ONE PHASE, or use RowFence"
	QueryNotPlain Code = "the ledger is asked in the WHERE of each SELECT of its query, and one isn't plain; " +
		"write it without ROLLUP, windows and a bracket of its own, or write INSERT ... VALUES"
	ReadsItself Code = "the query reads the table that it writes, so behind %s its columns are ambiguous; give " +
		"the table in the SELECT an alias"
	ReadsWhatIsAssigned Code = "it assigns another table's column the fence, serial or claim column, which the " +
		"guard assigns in the same statement; write a statement for each table"
	ReplaceDeletes Code = "OR REPLACE may delete other rows or keep part of a failed statement; write INSERT ... " +
		"%s"
	ReplaceNotListed Code = "which rows OR REPLACE deletes can't be told without a list of columns and VALUES; " +
		"write INSERT ... %s"
	ReplaceOfMany Code = "which rows OR REPLACE deletes can't be told of so many rows; write at most 100 at " +
		"once; write INSERT ... %s"
	ReplaceOfRowid        Code = "OR REPLACE with %s may delete the row of that number; name the key column instead"
	ReplaceOfUnknownToken Code = "which token a new row takes can't be told, and OR REPLACE may delete others; " +
		"write INSERT ... %s"
	ReplaceUnknown     Code = "which rows OR REPLACE deletes can't be told: %s; write INSERT ... %s"
	ReplaceWithClauses Code = "which rows OR REPLACE deletes can't be told with WITH, with ON CONFLICT or in the " +
		"schema temp; write INSERT ... %s"
	RowOfCursor      Code = "WHERE CURRENT OF can't be guarded here; select the row by its key"
	RowWithoutValues Code = "a row has no values for the columns; write them, or DEFAULT"
	RowidMayBeKey    Code = "the rowid may be the row's key; name the key column instead"
	RunsExecute      Code = "EXECUTE runs a text that is built at run time and can't be checked; send its statements " +
		"one by one, or run it under Bypass"
	RunsDynamicSQL Code = "what it runs can't be seen in its text; send its statements one by one, or run it under " +
		"Bypass"
	SameName Code = "another table of the statement has the same name or alias but for the case of letters; give " +
		"each an alias of its own"
	SerialWithCTE Code = "under WithSerial the database would apply the write in WITH even if the row is " +
		"gone; send it as a statement of its own"
	SerialIgnores Code = "OR IGNORE skips a row that breaks a constraint, which WithSerial would report as gone; " +
		"write UPDATE without it"
	SerialInCondition Code = "the condition names the serial column, which WithSerial compares already; leave " +
		"the column out, or qualify it if it is another table's"
	SerialInWith Code = "drivers don't count the rows of a write in WITH, so WithSerial can't report a row that " +
		"is gone; write it as the main statement, or run it without WithSerial"
	SerialNotAlone Code = "under WithSerial the statement must end at the semicolon, because drivers would count " +
		"the rows of the text after it; leave that text out"
	SerialOfExplain Code = "drivers don't count the rows of an EXPLAIN, so WithSerial can't report a row that is " +
		"gone; run it without WithSerial"
	SerialOfMerge Code = "some drivers don't count the rows of a MERGE, so WithSerial can't report a row that is " +
		"gone; write UPDATE or DELETE"
	SerialOfUpsert Code = "an upsert doesn't show whether it updated the row, so WithSerial can't report a row " +
		"that is gone; write UPDATE, or INSERT for a new row"
	SerialSkipsLocked Code = "SKIP LOCKED skips a row that another transaction has locked, which WithSerial " +
		"would report as gone; leave SKIP LOCKED out, or run it without WithSerial"
	SetsClock Code = "it sets the session's clock, and locks of rows would expire by that; run it under Bypass, " +
		"on a connection of its own"
	SettingsMayChange Code = "where its strings end depends on the session's settings, and a statement before " +
		"this one may change them; send each statement by itself"
	Multi Code = "it writes to a registered table and is one of several statements in one text; send each by " +
		"itself"
	MultiKinds Code = "it writes to a registered table and is one of several statements in one text, and not " +
		"all are INSERT, UPDATE, DELETE or SELECT; send each by itself"
	MultiWithArguments Code = "it writes to a registered table and is one of several statements in one text, " +
		"which can't have arguments; send each by itself"
	MultiWithSerial Code = "it writes to a registered table and is one of several statements in one text, and " +
		"their rows can't be counted under WithSerial; send each by itself"
	ShadowsClaims        Code = "a CTE named %s would shadow the table with the claims; rename the CTE"
	ShadowsLedger        Code = "a CTE named %s would shadow the ledger; rename the CTE"
	ShadowsLedgerInQuery Code = "a CTE named %s would shadow the ledger in its query; rename the CTE"
	SortsAside           Code = "an UPDATE with ORDER BY and a subquery may be executed on a copy of its rows, in " +
		"which a guard sees another one; select the keys by SELECT ... FOR UPDATE, and update the rows with these " +
		"keys in the same transaction"
	TakesOverKey Code = "it takes rows over and assigns the key column, and has no token that the new key could " +
		"be compared with; leave the key column out"
	TemporaryClaims    Code = "a table of this name would stand before the one with the claims; give it another name"
	TooLong            Code = "it has %d bytes, at most %d are read; split it"
	UniqueValueUnknown Code = "the unique column %s gets a value that is neither an argument nor a constant"
	Unreadable         Code = "this statement can't be read; write it as plain UPDATE, DELETE or INSERT"
	UpdateOr           Code = "OR %s may delete other rows or keep part of a failed statement; write UPDATE without it"
	UpsertHidesKeys    Code = "under WithSerial an upsert has to show the rows' keys; pass them as arguments, or " +
		"write constants"
	UpsertNamesSerial Code = "under WithSerial an upsert can't name the serial column; leave the column out"
	UpsertReturns     Code = "under WithSerial an upsert can't have RETURNING; write UPDATE, or leave RETURNING out"
	ViewInPlace       Code = "a view of this name could be found in the place of the table, and guards would read " +
		"the view's columns; give it another name, or run it under Bypass"
	WordFoldsByLocale Code = "depending on the database's encoding this word may name a guarded table or column; " +
		"write it in double quotes"
	WritesClaims     Code = "it also writes table %s, which has the claims; write two statements in one transaction"
	WritesManyTables Code = "it writes to several registered tables, or twice to one; write a statement for each, " +
		"in one transaction"
)
