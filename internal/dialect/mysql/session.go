package mysql

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Session has the queries of a MySQL or MariaDB server's capabilities.
var Session = &session.Dialect{
	Text:   Text,
	Canary: canary, ReadProbe: readProbe,
	Settings: "SHOW VARIABLES" + variables, Queries: queries, Read: readRow,
	Uncut:   sessionVariables + variables + " ORDER BY 1 LIMIT 1000",
	Version: "SELECT @@version, @@version_comment", ReadVersion: readVersion,
	Columns: columns, Narrow: isNarrow,
	OpenTx:  openTx,
	BeginTx: "BEGIN PESSIMISTIC",
	Standby: "@@global.read_only NOT IN ('0', 'OFF')", // a number, or a word in newer versions
	Others:  otherServers, Itself: itself,

	ErrorEndsTx: fact.No,
	HasSettings: fact.Yes,
	HasCharset:  fact.Yes,
	HasCounts:   fact.No,
}

var otherServers = []session.Server{
	{Word: "tidb", Name: tidbName}, {Word: "vitess", Name: vitessName}, {Word: "singlestore", Name: "SingleStore"},
	{Word: "memsql", Name: "SingleStore"}, {Word: "dolt", Name: "Dolt"}, {Word: "oceanbase", Name: "OceanBase"},
	{Word: "starrocks", Name: "StarRocks"}, {Word: "doris", Name: "Doris"}, {Word: "matrixone", Name: "MatrixOne"},
	{Word: "databend", Name: "Databend"}, {Word: "clickhouse", Name: "ClickHouse"}, {Word: "tddl", Name: "PolarDB-X"},
	{Word: "polardb-x", Name: "PolarDB-X"}, {Word: "x-cluster", Name: "PolarDB-X"}, {Word: "xpand", Name: "Xpand"},
	{Word: "clustrix", Name: "Xpand"}, {Word: "-cluster", Name: "NDB Cluster"},
	{Word: "mysql cluster", Name: "NDB Cluster"},
}

// itself matches the version strings of MySQL and MariaDB: a version, revisions of its package, and then -MariaDB, or
// words for an edition of MySQL, such as -enterprise, a stage, such as -rc1, or a cloud, such as -google.
var itself = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9][0-9a-z.+~:]*)*(-MariaDB.*|(-(log|debug|valgrind|asan|` +
	`commercial|enterprise|community|advanced|standard|alpha|beta|dmr|m[0-9]+|rc[0-9]*|labs|lts|innovation|` +
	`azure|google|cloud|u[0-9]+|rds[.0-9]*))*)$`)

// canary reads only the version: an error message of MySQL has no room for more. See [session.Dialect].
func canary(w *session.Wanted, _ bool) string {
	return "SELECT 1 FROM (SELECT 1 AS n) AS q WHERE CASE WHEN q.n <= 0 THEN TRUE ELSE " +
		session.Throwing(cmp.Or(w.Capabilities.Text, Text), "VERSION()") + " IS NOT NULL END"
}

func readVersion(f *session.Capabilities, row []string) {
	if len(row) == 2 {
		f.Front, f.Comment = row[0], row[1]+" "
		knowVitess(f)
	}
}

func readProbe(w *session.Wanted, detail string) error {
	w.Capabilities.Version, _, _ = strings.Cut(detail, sqltext.Padding)
	return nil
}

// The variables that show a server's capabilities. Each server has only some of them, and SHOW VARIABLES leaves out the
// others, where SELECT @@name would be an error.
const (
	charset        = "character_set_client"
	sqlMode        = "sql_mode"
	versionComment = "version_comment"
	memSQL         = "memsql_version"
	readOnly       = "read_only"
	binaryLog      = "log_bin" // it comes before galera, because the rows are sorted by name
	selectLimit    = "sql_select_limit"
)

// sessionVariables is a query for the session's variables, and for the global variables that sessions have no value of.
const sessionVariables = "SELECT variable_name, variable_value FROM /*M! information_schema */ " +
	"/*!50713 performance_schema */ .session_variables"

var variables = " WHERE Variable_name IN ('" + versionComment + "', '" + memSQL + "', '" + charset +
	"', '" + sqlMode + "', '" + readOnly + "', '" + binaryLog + "', '" + selectLimit + "', '" + galera + "', '" + group +
	"', '" + strings.Join(tidbVariables, "', '") + "')"

// columns returns a query that finds temporary tables and views as well, unless cut reports that the session's settings
// limit the rows of SHOW.
func columns(table session.Name, cut bool) string {
	name, schema := Text.Quote(table.Table), "DATABASE()"
	if table.Schema != "" {
		name, schema = Text.Quote(table.Schema)+"."+name, Text.Text(table.Schema)
	}
	if !cut {
		return "SHOW COLUMNS FROM " + name
	}
	return "SELECT column_name, column_type FROM information_schema.columns WHERE table_schema = " + schema +
		" AND table_name = " + Text.Text(table.Table) + " LIMIT 10000"
}

// isNarrow reports whether a column of the type can't store each token; a decimal of 16 digits can.
func isNarrow(columnType string) bool {
	digits := decimal.FindStringSubmatch(columnType)
	return !strings.HasPrefix(columnType, "bigint") && (digits == nil || digits[1] < "16")
}

var decimal = regexp.MustCompile(`^decimal\(([0-9]{2}),0\)`)

// sealFact begins a row with the index of a sealed table.
const sealFact = "sealed"

// viewFact begins a row with a view: its schema, its name, and whether the session's database has the view.
const viewFact = "view"

// queries: a table is sealed once it has all three triggers.
func queries(w *session.Wanted) []string {
	if w.Server {
		w.Capabilities.Escapes, w.Capabilities.AssignsAtOnce, w.Capabilities.Clips = lex.AnyEncoding, true, true
		w.Capabilities.Cut = true
	}
	seals := w.EachSeal(func(index string, name session.Name) string {
		home := "DATABASE()"
		if name.Schema != "" {
			home = Text.Text(name.Schema)
		}
		return "SELECT " + Text.Text(sealFact) + ", " + Text.Text(index) + ", '', '' " +
			"FROM information_schema.triggers WHERE event_object_schema = " + home +
			" AND event_object_table = " + Text.Text(name.Table) +
			" AND trigger_name LIKE " + Text.Text(sqltext.SealPrefix+"%") + " HAVING COUNT(*) = 3"
	})
	if views := findViews(&w.Read); seals == "" {
		seals = views
	} else if views != "" {
		seals += " UNION ALL " + views
	}
	if seals == "" {
		return nil
	}
	return []string{sqltext.Whole(Text, seals)}
}

// findViews is a query for the views of some names; empty without any.
func findViews(names *session.Names) string {
	if !names.Any() {
		return ""
	}
	named := "table_schema " + NotTheServers
	if !names.All {
		list := make([]string, len(names.List))
		for i, name := range names.List {
			list[i] = "LOWER(" + Text.Text(name) + ")"
		}
		named = "LOWER(table_name) IN (" + strings.Join(list, ", ") + ")"
	}
	return "SELECT " + Text.Text(viewFact) + ", table_schema, table_name, COALESCE(table_schema = DATABASE(), 0) " +
		"FROM information_schema.tables WHERE table_type = 'VIEW' AND " + named
}

func readRow(w *session.Wanted, row []string) {
	if len(row) < 2 {
		return
	}
	f, variable, value := &w.Capabilities, strings.ToLower(row[0]), row[1]
	if hasOtherWriters(variable, value) {
		f.Apart, f.Leaks = peers, variable == galera && w.Unlogged
	}
	f.Unfit = cmp.Or(unfitTiDB(variable, value), unfitVitess(f, variable, value), f.Unfit)
	switch variable {
	case tidb:
		f.Known, f.Text, f.LocksAlone, f.SetReadsOldRow = tidbName, tidbText{}, true, true
	case versionComment:
		f.Comment += value
	case memSQL: // it comes first
		f.Comment += memSQL + " "
	case charset:
		f.Escapes = f.Escapes.Mode() | splitting(value)
	case binaryLog:
		w.Unlogged = value == "OFF"
	case selectLimit: // it limits the rows of SHOW, too
		f.Cut = len(value) < len("10000") // more than a table has columns
	case readOnly:
		f.Standby = value != "OFF"
	case sqlMode:
		readModes(f, strings.Split(value, ","))
	case viewFact:
		if len(row) == 4 {
			f.Views = append(f.Views, session.View{Schema: row[1], Name: row[2], Visible: row[3] == "1",
				Aliased: f.Known == vitessName})
		}
	case sealFact:
		if i, err := strconv.Atoi(value); err == nil {
			w.FoundSeal(i)
		}
	}
}

// readModes reads the modes of sql_mode. Under SIMULTANEOUS_ASSIGNMENT no guard may assign a column twice: in an upsert
// MariaDB stores the first of two values, and crashes with three, and in an UPDATE a second value is an error.
func readModes(f *session.Capabilities, modes []string) {
	f.AssignsAtOnce = slices.Contains(modes, "SIMULTANEOUS_ASSIGNMENT")
	f.Clips = !slices.Contains(modes, "STRICT_TRANS_TABLES") && !slices.Contains(modes, "STRICT_ALL_TABLES")
	switch {
	case slices.Contains(modes, "NO_BACKSLASH_ESCAPES"):
		f.Escapes |= lex.EscapesNone
	case slices.Contains(modes, "ANSI_QUOTES"):
		f.Escapes |= lex.EscapesInText
	default:
		f.Escapes |= lex.EscapesAll
	}
}

// splitting returns how an encoding uses ASCII bytes inside other characters.
func splitting(charset string) lex.Escapes {
	switch {
	case charset == "gbk", charset == "gb18030":
		return lex.GBK
	case charset == "big5":
		return lex.Big5
	case charset == "sjis", charset == "cp932":
		return lex.SJIS
	case slices.Contains(plainCharsets, charset):
		return lex.EscapesUnknown
	}
	return lex.AnyEncoding
}

// plainCharsets are the character sets that a client may use, but for those in splitting and seven-bit Swedish. In
// EUC-KR a character's second byte may be an ASCII letter, but no quote or backslash, so it ends no string.
var plainCharsets = []string{
	"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "binary",
	"armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew",
	"hp8", "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "tis620",
	"eucjpms", "euckr", "gb2312", "ujis",
}

// NotTheServers is a condition for a schema that is not one of the server itself.
const NotTheServers = `NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')`
