package database

import (
	"errors"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
)

var mysqlServer = &Database{
	Name:      "mysql",
	schemes:   []string{"mysql://"},
	driver:    "mysql",
	nowhere:   "tcp(127.0.0.1)/",
	Dialect:   sqlfence.MySQL,
	Text:      my.Text,
	parse:     parseMySQL,
	delimiter: ";;",
	waits:     waitsMySQL,
	LaterFiles: map[string]string{
		"00004_ledger_update.up.sql":       ledgerTriggerMySQL + "'sqlfence_ledger_update_v1'",
		"00005_ledger_delete.up.sql":       ledgerTriggerMySQL + "'sqlfence_ledger_delete_v1'",
		"00006_ledger_first_update.up.sql": ledgerTriggerMySQL + "'sqlfence_ledger_first_update_v1'",
		"00007_ledger_first_insert.up.sql": ledgerTriggerMySQL + "'sqlfence_ledger_first_insert_v1'",
	},
}

const ledgerTriggerMySQL = "SELECT 1 FROM (SELECT trigger_name, event_object_schema AS table_schema, " +
	"event_object_table AS table_name FROM information_schema.triggers) AS t " +
	"WHERE t.table_schema = DATABASE() AND t.table_name = _utf8mb4'fencing_tokens' AND t.trigger_name = "

// parseMySQL turns a URL into the driver's data source name. The parameters are the driver's own, and socket, the path
// of a Unix socket.
func parseMySQL(dsn string, _ bool) (string, []string, error) {
	u, secrets, err := parseURL(dsn)
	if err != nil && strings.Contains(dsn, "@tcp(") {
		return "", nil, errors.New("the data source name is a URL here, without tcp(…): " +
			"mysql://user:password@host:3306/database")
	}
	if err != nil {
		return "", nil, err
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	query := u.Query()
	if socket := query.Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
		query.Del("socket")
	}
	parsed, err := mysql.ParseDSN(withParameters(cfg.FormatDSN(), query))
	if err != nil {
		return "", secrets, errors.New("a part of the data source name is invalid: " + err.Error())
	}
	return parsed.FormatDSN(), secrets, nil
}

func withParameters(dsn string, query url.Values) string {
	if len(query) == 0 {
		return dsn
	}
	between := "?"
	if strings.Contains(dsn[strings.LastIndexByte(dsn, '/'):], "?") {
		between = "&"
	}
	return dsn + between + query.Encode()
}
