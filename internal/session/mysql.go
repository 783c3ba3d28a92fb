package session

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// MySQL is MySQL and MariaDB.
var MySQL Dialect = mysql{}

type mysql struct{}

func (mysql) text() sqltext.Dialect { return my.Text }

// canary: the version is all that the message has room for.
func (d mysql) canary(*wanted, bool) string {
	return "SELECT 1 FROM (SELECT 1 AS n) AS q WHERE CASE WHEN q.n <= 0 THEN TRUE ELSE " + raising(d.text(), "VERSION()") + " IS NOT NULL END"
}

func (mysql) readProof(w *wanted, detail string) error {
	w.facts.Version, _, _ = strings.Cut(detail, sqltext.Padding)
	return nil
}

// The variables that are asked for. A server has some of them only; so they are shown, not read.
const (
	charset        = "character_set_client"
	sqlMode        = "sql_mode"
	versionComment = "version_comment"
	memSQL         = "memsql_version"

	// A server of a group writes beside others: global variables that can't be set while the server runs, or
	// not while it is part of a group. wsrep_on is a session's, too, and may be set by a connection. Galera's
	// provider is named also where it is switched off.
	galera = "wsrep_provider"
	group  = "group_replication_single_primary_mode"
)

const showVariables = "SHOW VARIABLES WHERE Variable_name IN ('" + versionComment + "', '" + memSQL + "', '" + charset + "', '" + sqlMode +
	"', '" + galera + "', '" + group + "')"

// sealFact is the name of a row that says that a table is sealed, by its index.
const sealFact = "sealed"

// questions: a table is sealed once it has all three triggers.
func (d mysql) questions(w *wanted) (all []string) {
	if w.server {
		w.facts.SplitCharset, w.facts.AssignsAtOnce = "unknown", true
		all = append(all, showVariables)
	}
	text := d.text()
	seals := w.eachSeal(func(index string, name Name) string {
		home := "DATABASE()"
		if name.Schema != "" {
			home = text.Text(name.Schema)
		}
		return "SELECT " + text.Text(sealFact) + ", " + text.Text(index) + " FROM information_schema.triggers WHERE " +
			"event_object_schema = " + home +
			" AND event_object_table = " + text.Text(name.Table) + " AND trigger_name LIKE " + text.Text(sqltext.SealPrefix+"%") + " HAVING COUNT(*) = 3"
	})
	if seals != "" {
		all = append(all, seals)
	}
	return all
}

func (mysql) read(w *wanted, row []string) {
	if len(row) < 2 {
		return
	}
	f, value := &w.facts, row[1]
	switch strings.ToLower(row[0]) {
	case versionComment:
		f.Comment = value
	case memSQL:
		f.Comment += " " + memSQL
	case charset:
		f.SplitCharset = ""
		if !slices.Contains(plainCharsets, value) {
			f.SplitCharset = value
		}
	case sqlMode:
		// MariaDB stores the first value then, and crashes where there are three. Of an UPDATE it is an error.
		f.AssignsAtOnce = slices.Contains(strings.Split(value, ","), "SIMULTANEOUS_ASSIGNMENT")
	case galera:
		f.Peers = f.Peers || value != "" && value != "none"
	case group:
		f.Peers = f.Peers || value == "OFF"
	case sealFact:
		if i, err := strconv.Atoi(value); err == nil {
			w.foundSeal(i)
		}
	}
}

func (mysql) version() string { return "SELECT VERSION(), @@version_comment" }

// mysqlUnlike are servers that speak MySQL's protocol, and have locks or an isolation of their own.
var mysqlUnlike = []namedServer{
	{"tidb", "TiDB"}, {"vitess", "Vitess"}, {"singlestore", "SingleStore"}, {"memsql", "SingleStore"}, {"dolt", "Dolt"}, {"oceanbase", "OceanBase"},
	{"starrocks", "StarRocks"}, {"doris", "Doris"}, {"matrixone", "MatrixOne"}, {"databend", "Databend"}, {"clickhouse", "ClickHouse"},
	{"tddl", "PolarDB-X"}, {"polardb-x", "PolarDB-X"}, {"x-cluster", "PolarDB-X"}, {"xpand", "Xpand"}, {"clustrix", "Xpand"},
}

// mysqlItself: what stands behind the number says who has built it.
var mysqlItself = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)

func (mysql) unlike(f *Facts) string {
	name := named(mysqlUnlike, f.Version, f.Comment)
	if name == "" && !mysqlItself.MatchString(f.Version) {
		name, _, _ = strings.Cut(f.Version, " ")
	}
	return name
}

func (mysql) errorEndsTx() bool { return false }

// plainCharsets are all encodings that a client may have but Big5, GBK, GB18030, Shift JIS and its variant
// cp932, and the Swedish of seven bits. In EUC-KR a character's second byte may be a letter, which ends nothing.
var plainCharsets = []string{
	"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "binary",
	"armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew",
	"hp8", "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "tis620",
	"eucjpms", "euckr", "gb2312", "ujis",
}

func (mysql) hasSettings() bool { return true }

func (mysql) hasCharset() bool { return true }

func (mysql) hasCounts() bool { return false }

// asksInTx: information_schema may be read by what would be the transaction's snapshot.
func (mysql) asksInTx() bool { return false }
