package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// dynamicText is the reason for refusing a function that runs dynamic SQL.
const dynamicText = "this function runs a text, which may change a setting that keeps triggers from firing; " +
	"write a text without set_config as a constant, send it as a statement of its own, or run it under Bypass"

// protectedSetting returns the setting's name if token i names a setting that only sqlfence may change (see
// [sqltext.OwnsSetting]). The token may be an identifier, quoted or not, or a string.
func protectedSetting(t *lex.Scanned, i int32) string {
	name, ok := t.Name(int(i))
	switch {
	case ok && t.Tokens[i+1].Is('.'):
		behind, _ := t.Name(int(i) + 2)
		name += "." + behind
	case t.Tokens[i].Kind == lex.Text:
		name = strings.Trim(strings.TrimLeft(t.TokenText(i), "eEnN"), "'$")
	case !ok:
		return ""
	}
	if !sqltext.OwnsSetting(name) {
		return ""
	}
	return strings.ToLower(name)
}

// setterNames are the names that can change a setting of PostgreSQL in a statement that reads or writes rows.
var setterNames = append([]string{setConfig, settingsView}, runnerNames()...)

const (
	setConfig    = "set_config"
	settingsView = "pg_settings"
)

// runners are functions of PostgreSQL that run dynamic SQL, with the positions of the arguments that contain SQL. The
// functions allow only queries, but a query may change a protected setting by set_config. dblink isn't listed, because
// dblink runs SQL in another session.
var runners = map[string][]int{
	"query_to_xml": {0}, "query_to_xmlschema": {0}, "query_to_xml_and_xmlschema": {0}, "ts_stat": {0},
	"ts_rewrite": {1}, "crosstab": {0, 1}, "crosstab2": {0}, "crosstab3": {0}, "crosstab4": {0},
	"connectby": {0, 1, 2, 3},
}

func runnerNames() (names []string) {
	for name := range runners {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// dynamicSetting returns why the expression at token i may change a setting that the statement doesn't name; empty if
// it doesn't.
//
//	set_config(name, ...) | UPDATE pg_settings | query_to_xml(query, ...)
func dynamicSetting(t *lex.Scanned, i int32) string {
	name, ok := t.Name(int(i))
	switch {
	case !ok:
	case name == settingsView && isUpdated(t, i):
		return sqltext.DynamicSetting
	case !t.Tokens[i+1].Is('('):
	case name == setConfig && !isShown(t, t.Item(arguments(t, i), 0)):
		return sqltext.DynamicSetting
	case runners[name] != nil && !runsShown(t, name, arguments(t, i)):
		return dynamicText
	}
	return ""
}

// settingArgument returns the number of the argument that names the setting of the set_config at token i.
//
//	set_config($1, ...)
func settingArgument(t *lex.Scanned, i int32) (number int, ok bool) {
	if !t.Word(i, setConfig) {
		return 0, false
	}
	item := withoutCast(t, t.Item(arguments(t, i), 0))
	if item.Hi-item.Lo != 1 || t.Tokens[item.Lo].Kind != lex.Param {
		return 0, false
	}
	number, err := strconv.Atoi(t.TokenText(item.Lo)[1:])
	return number, err == nil && number > 0
}

// arguments returns the range inside the brackets after token i.
func arguments(t *lex.Scanned, i int32) lex.Range {
	return lex.Range{Lo: i + 2, Hi: t.Tokens[i+1].Mate}
}

// isShown reports whether an expression is one constant without escapes.
//
//	'text' | E'text' | $$text$$ | 'text'::text
func isShown(t *lex.Scanned, s lex.Range) bool {
	s = withoutCast(t, s)
	return s.Hi-s.Lo == 1 && t.Tokens[s.Lo].Kind == lex.Text && strings.IndexByte("'$eE", t.TokenText(s.Lo)[0]) >= 0 &&
		strings.IndexByte(t.TokenText(s.Lo), '\\') < 0
}

// withoutCast returns an expression of one token without its cast to a text.
func withoutCast(t *lex.Scanned, s lex.Range) lex.Range {
	if s.Hi-s.Lo == 4 && t.Tokens[s.Lo+1].Is(':') && t.Tokens[s.Lo+2].Is(':') && t.Word(s.Lo+3, "text", "varchar") {
		s.Hi = s.Lo + 1
	}
	return s
}

// runsShown reports whether the SQL that a function runs is constant and changes no setting.
func runsShown(t *lex.Scanned, runner string, args lex.Range) bool {
	if runner == "ts_rewrite" && t.Item(args, 2).Lo < args.Hi {
		return true // three queries, and no text
	}
	for _, place := range runners[runner] {
		item := t.Item(args, place)
		if item.Lo < args.Hi && (!isShown(t, item) || mayChangeSettings(t.TokenText(item.Lo))) {
			return false
		}
	}
	return true
}

// mayChangeSettings reports whether dynamic SQL may change a setting.
func mayChangeSettings(code string) bool {
	code = strings.ToLower(code)
	return strings.Contains(code, `u&"`) ||
		slices.ContainsFunc(setterNames, func(name string) bool { return strings.Contains(code, name) })
}

// isUpdated reports whether the table at token i is that of an UPDATE.
//
//	UPDATE [ONLY] [(] [schema .] table
func isUpdated(t *lex.Scanned, i int32) bool {
	for i > 1 && t.Tokens[i-1].Is('.') {
		i -= 2
	}
	for i > 0 && (t.Tokens[i-1].Is('(') || t.Word(i-1, "only")) {
		i--
	}
	return i > 0 && t.Word(i-1, "update")
}

// catalogue lists the tables of pg_catalog, which superusers may write to, and the writable views of pg_catalog.
// dynamicSetting handles pg_settings.
var catalogue = strings.Fields(`
	pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_auth_members pg_authid pg_cast pg_class
	pg_collation pg_constraint pg_conversion pg_database pg_db_role_setting pg_default_acl pg_depend
	pg_description pg_enum pg_event_trigger pg_extension pg_foreign_data_wrapper pg_foreign_server
	pg_foreign_table pg_group pg_index pg_inherits pg_init_privs pg_language pg_largeobject
	pg_largeobject_metadata pg_namespace pg_opclass pg_operator pg_opfamily pg_parameter_acl pg_partitioned_table
	pg_policy pg_proc pg_publication pg_publication_namespace pg_publication_rel pg_range pg_replication_origin
	pg_rewrite pg_seclabel pg_sequence pg_shdepend pg_shdescription pg_shseclabel pg_stat_database_conflicts
	pg_statistic pg_statistic_ext pg_statistic_ext_data pg_subscription pg_subscription_rel pg_tablespace
	pg_transform pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_type
	pg_user_mapping`)
