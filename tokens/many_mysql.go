package tokens

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/stop"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// eachTextMySQL issues a token for each name of {asked}, in order, and appends the name's place and the token to a
// session variable. MySQL's UPDATE has no RETURNING, and LAST_INSERT_ID has room for only one number. The statement
// fails if a name has no row or no token left.
const eachTextMySQL = `UPDATE ({asked}) AS asked STRAIGHT_JOIN {ledger} AS base ON base.name = {empty} ` +
	`LEFT JOIN {ledger} AS t ON t.name = asked.name
SET t.token = CASE WHEN LENGTH(@sqlfence_issued := CONCAT(@sqlfence_issued, _utf8mb4' ', asked.place, _utf8mb4':', {next})) > 0 THEN {next} END
WHERE CASE WHEN NOT ({alone}) THEN FALSE ELSE {fit t.name IS NOT NULL AND COALESCE(t.token, 0) BETWEEN 0 AND {max} - 1 AND COALESCE(base.token, 0) <= {max} - 1} END`

func eachMySQL(ctx context.Context, s *Store, names []string) (values map[string]int64, err error) {
	mark := nonce.New()
	p := sqltext.Fragments{
		"asked": sqltext.Raw(requestedMySQL(names, mark)),
		"next":  sqltext.SQL("(GREATEST(COALESCE(t.token, 0), COALESCE(base.token, 0)) + 1)"),
		"fit":   throws(s.dialect),
		"alone": alone,
	}
	err = stop.Abandoned(ctx, s.cleanup, mysqlText(eachTextMySQL, p), func(text string) error {
		return s.alone(ctx, func(in session) error {
			values, err = execEach(ctx, in, text, names, mark)
			return err
		})
	})
	issues := execEach
	if my.IsUnsupported(err) {
		issues = issueInTurn
	} else if values != nil || err != nil && !sqltext.IsThrown(s.dialect, err, full) {
		return values, err
	}
	// The statement issued nothing, because the session isn't in autocommit mode, or a name is new or has no token
	// left.
	p["alone"] = always
	err = s.withStart(ctx, func() error {
		return s.transact(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			if err := lockStartMySQL(ctx, tx); err != nil {
				return err
			}
			// The INSERT adds the missing names, and locks the rows of the other names.
			add := addMySQL("INSERT", names, " ON DUPLICATE KEY UPDATE token = token")
			if err := execAll(ctx, tx, []string{add}); err != nil {
				return err
			}
			values, err = issues(ctx, tx, mysqlText(eachTextMySQL, p), names, mark)
			return err
		})
	})
	if errors.Is(err, errNotStored) {
		err = s.whyFull(ctx, names)
	}
	return values, err
}

// issueInTurn issues the tokens by a statement for each name, for a server that can't execute eachTextMySQL.
func issueInTurn(ctx context.Context, in session, _ string, names []string, _ string) (map[string]int64, error) {
	values := make(map[string]int64, len(names))
	for _, name := range names {
		tag := newTag()
		id, err := execID(ctx, in, mysqlText(issueTextMySQL, sqltext.Fragments{
			"name": sqltext.Raw(my.Text.Text(name)), "count": number(1), "tag": number(tag), "alone": always}),
			true, tag)
		if err == nil && id == 0 {
			err = errNotStored
		}
		if err != nil {
			return nil, err
		}
		values[name] = id
	}
	return values, nil
}

// requestedMySQL returns a query for the names and their places, from 1. The query's first row sets the session
// variable to mark, a random text.
func requestedMySQL(names []string, mark string) string {
	rows := make([]string, len(names))
	for i, name := range names {
		place := strconv.Itoa(i + 1)
		if i == 0 {
			place = "SIGN(LENGTH(@sqlfence_issued := " + my.Text.Text(mark) + "))"
		}
		rows[i] = "SELECT _binary X'" + hex.EncodeToString([]byte(name)) + "' AS name, " + place + " AS place"
	}
	return strings.Join(rows, " UNION ALL ")
}

// execEach executes a text of eachTextMySQL and returns the issued tokens by name, or nil if the statement issued none.
func execEach(ctx context.Context, in session, text string, names []string, mark string) (map[string]int64, error) {
	result, err := in.ExecContext(trusted.Context(ctx, text), text)
	if err != nil {
		return nil, err
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		return nil, err
	}
	var left sql.NullString
	issued := sqltext.Whole(my.Text, "SELECT @sqlfence_issued")
	if err := in.QueryRowContext(trusted.Context(ctx, issued), issued).Scan(&left); err != nil {
		return nil, err
	}
	entries, ok := strings.CutPrefix(left.String, mark)
	if !ok {
		return nil, errOtherSession
	}
	return readEach(entries, names)
}

// readEach parses the entries that eachTextMySQL has appended to the variable: " place:token" for each name.
func readEach(entries string, names []string) (map[string]int64, error) {
	values := make(map[string]int64, len(names))
	for _, entry := range strings.Fields(entries) {
		place, token, _ := strings.Cut(entry, ":")
		at, err := strconv.Atoi(place)
		if err == nil && (at < 1 || at > len(names) || values[names[at-1]] > 0) {
			err = errors.New("no such name, or one that comes twice")
		}
		if err == nil {
			values[names[at-1]], err = strconv.ParseInt(token, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("the session's variable has %q in it: %w", entry, err)
		}
	}
	if len(values) != len(names) {
		return nil, fmt.Errorf("the session's variable has tokens of %d names, want %d", len(values), len(names))
	}
	return values, nil
}
