package statements_test

// expressionForms are the kinds of expressions. Many contain words and characters that begin a clause in other places.
var expressionForms = map[string]production{
	"integer": {
		plain: []string{
			"1", "2", "0", "-1", "id", "price", "a", "b", "{books}.price", `{books}."a"`, "$n::int", "$n::int", "($n)::int", "$n::integer",
			"int '7'", "'3'::int", "E'4'::integer", "cast('6' as int)", "int4 '8'", "pg_catalog.length('where')",
		},
		nested: []string{
			"{integer} + {integer}", "{integer} * {integer}", "{integer} # {integer}", "{integer} OPERATOR(pg_catalog.+) {integer}", "- {integer}", "@ {integer}",
			"( {integer} )", "{integer} - {integer}", "{integer} | {integer}", "( {condition} )::int",
			"CASE WHEN {condition} THEN {integer} END", "CASE WHEN {condition} THEN {integer} when {condition} then {integer} ELSE {integer} END",
			"case {integer} when {integer} then {integer} else {integer} end",
			"COALESCE( {integer} , {integer} )", "nullif( {integer} , {integer} )", "greatest( {integer} , {integer} )",
			"(SELECT {integer} FROM other WHERE {condition} ORDER BY 1 LIMIT 1)", "(SELECT {integer} as {label} )",
			"(SELECT -max( {integer} ) FILTER (WHERE {condition} ) FROM other)",
			"(SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {integer} ) from other)",
			"(SELECT count(*) FROM (VALUES ( {integer} ), ( {integer} )) v(x) GROUP BY x HAVING {condition} ORDER BY x OFFSET 0 FETCH FIRST 1 ROW ONLY)",
			"(WITH w AS MATERIALIZED (SELECT {integer} AS where_) SELECT where_ FROM w)",
			"length( {text} )", "position( {text} in {text} )", "extract( {part} from {time} )::int % 7",
			"(ARRAY[ {integer} , {integer} ])[1]", "(row( {integer} , {integer} )).f1",
		},
	},
	"label": {plain: []string{"from", "set", `"where"`, "returning", "end", "case"}},
	"part":  {plain: []string{"year", "epoch", "'hour'"}},

	"text": {
		plain: []string{
			"t", "{books}.t", "'x'", "'it''s'", `E'\'where'`, "$q$ where returning $q$", `U&'\0041'`, "'--'", "'/*'", "$$'$$", "N'n'",
			"j->>'where'", "j #>> '{set,from}'",
		},
		nested: []string{
			"{text} || {text}", "( {text} )", `{text} COLLATE "C"`, "( {integer} )::text", "cast( {integer} as {texts} )",
			"{choice}",
			"substring( {text} from 1 for 2)", "trim(both 'x' from {text} )", "overlay( {text} placing 'z' from 1 for 1)",
		},
	},
	"choice": {nested: []string{"CASE WHEN {condition} THEN {text} END", "CASE WHEN {condition} AND {condition} AND {condition} THEN {text} ELSE {text} END"}},
	"texts":  {plain: []string{"text", "varchar(3)", "character varying"}},

	"time": {
		plain: []string{
			"ts", "{books}.ts", "timestamptz '2021-01-01'", "timestamp with time zone '2020-01-01'",
			"'2020-01-02'::timestamptz", "'2020-01-02'::timestamp with time zone",
		},
		nested: []string{
			"{time} + {interval}", "( {time} AT TIME ZONE 'UTC' )::timestamp with time zone", "( {time} AT TIME ZONE CASE WHEN {condition} THEN 'UTC' ELSE 'CET' END )::timestamptz",
			"{time} ::timestamp without time zone ::timestamptz", "CASE WHEN {condition} THEN {time} ELSE {time} END",
		},
	},
	"interval": {plain: []string{"interval '1 day'", "interval '1' day", "'1 hour'::interval", "interval '1:2' hour to minute"}},

	"condition": {
		plain: []string{
			"true", "price > 1", "a = b", "id < 3", "id IN (1,2)", "t IS NOT NULL", "b ISNULL", "a NOTNULL", "$n::int = 1",
			"j ? 'where'", "j @> '{}'", "arr && ARRAY[1]", "exists (select from other)",
		},
		nested: []string{
			"{condition} AND {condition}", "{condition} AND {condition} AND {condition}", "{condition} and {condition} AND {condition}", "{condition} OR {condition}", "NOT {condition}", "( {condition} )", "( {condition} ) IS {truth}",
			"{integer} {comparison} {integer}", "{integer} {comparison} {integer}", "{integer} IS DISTINCT FROM {integer}", "{integer} IS NOT DISTINCT FROM {integer}",
			"{integer} BETWEEN {bound} AND {bound}", "{integer} NOT BETWEEN SYMMETRIC {bound} AND {bound}", "{integer} BETWEEN ASYMMETRIC ( {integer} ) AND ( {integer} )",
			"{integer} IN ( {integer} , {integer} )", "{integer} NOT IN ( {integer} , {integer} )", "{integer} IN (SELECT {integer} FROM other)", "{integer} = ANY (ARRAY[ {integer} ])",
			"( {integer} , {integer} ) = ( {integer} , {integer} )",
			"{text} {likeness} {text}", "{text} {likeness} {text}", "{text} {likeness} {choice}", "{text} LIKE {text} ESCAPE '!'", "like( {text} , {text} )", "{text} IS NOT NORMALIZED", "{text} IS NFC NORMALIZED",
			"EXISTS (SELECT 1 FROM other o JOIN LATERAL (SELECT {integer} AS z) l ON {condition} WHERE {condition} )",
			"CASE WHEN {condition} THEN {condition} ELSE {condition} END", "CASE WHEN {condition} THEN {condition} END",
			"( {time} , {time} ) OVERLAPS ( {time} , {time} )", "{time} < {time}", "{time} AT TIME ZONE 'UTC' < timestamp '2020-01-01'",
			"j::text IS JSON {uniqueness}", // since PostgreSQL 16
			"j ?| array['set']", "j ?& array['where']",
		},
	},
	"truth":      {plain: []string{"TRUE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"}},
	"comparison": {plain: []string{"=", "<", ">=", "<>", "!=", "OPERATOR(pg_catalog.<)"}},
	"bound":      {plain: []string{"1", "3", "a", "b"}},
	"likeness":   {plain: []string{"LIKE", "NOT LIKE", "ILIKE", "SIMILAR TO", "not similar to", "~", "~*", "!~*", "~~", "!~~*"}},
	"uniqueness": {plain: []string{"", "WITH UNIQUE KEYS", "OBJECT WITHOUT UNIQUE", "OBJECT WITH UNIQUE"}},
}
