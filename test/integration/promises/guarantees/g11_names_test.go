package guarantees_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/session"
)

const built = " on x86_64-pc-linux-gnu, compiled by gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3), 64-bit"

// servers maps the name in a refusal to version strings of refused servers. After a bar comes PostgreSQL's extension or
// MySQL's comment, after a second bar a variable that only this server has.
var servers = map[sqlfence.Dialect]map[string][]string{
	sqlfence.Postgres: {
		"CockroachDB":  {"CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)"},
		"YugabyteDB":   {"PostgreSQL 11.2-YB-2.19.3.0-b0" + built, "PostgreSQL 15.2-YB-2.25.0.0-b0" + built},
		"Redshift":     {"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.56754"},
		"Greenplum":    {"PostgreSQL 12.12 (Greenplum Database 7.0.0 build commit:0a7a3566873325aca1789ae6f818c80f17a9402d)" + built + " compiled on Sep 26 2023"},
		"Cloudberry":   {"PostgreSQL 14.4 (Apache Cloudberry 2.0.0-incubating build 1)" + built + " compiled on Aug 1 2025"},
		"Materialize":  {"v0.87.2 (Materialize)", "PostgreSQL 9.5.0 on x86_64-unknown-linux-gnu (Materialize v26.1.0)"},
		"RisingWave":   {"PostgreSQL 13.14.0-RisingWave-2.0.0 (a1b2c3)"},
		"CrateDB":      {"CrateDB 5.5.0 (built 5f6dd3e/2023-11-07T10:03:00Z, Linux 5.15 amd64, OpenJDK 64-Bit Server VM 21)"},
		"openGauss":    {"(openGauss 5.0.0 build a07d57c3) compiled at 2023-03-29 03:37:13 commit 0 last mr" + built, "PostgreSQL 9.2.4 (openGauss 3.0.0 build 02c14696)" + built},
		"GaussDB":      {"gaussdb (GaussDB Kernel V500R002C10 build 3264e5fe) compiled at 2022-09-17 14:26:21" + built},
		"Postgres-XL":  {"PostgreSQL 10.4 (Postgres-XL 10r1.1)" + built},
		"Postgres-XC":  {"PostgreSQL 9.3.2 (Postgres-XC 1.2.1)" + built},
		"PolarDB":      {"PostgreSQL 17.10 (PolarDB 17.10.1.0 build accf02e2) on x86_64-linux-gnu"},
		"QuestDB":      {"PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB"},
		"Citus":        {"PostgreSQL 16.4" + built + "|citus"},
		"pgEdge":       {"PostgreSQL 18.4 (pgEdge 5.0.10)" + built, "PostgreSQL 17.2" + built + "|spock"},
		"BDR":          {"PostgreSQL 16.4" + built + "|bdr"},
		"IvorySQL":     {"PostgreSQL 18.4 (IvorySQL 5.4)" + built},
		"AgensGraph":   {"PostgreSQL 17.10 (AgensGraph 2.17.0)" + built},
		"EnterpriseDB": {"PostgreSQL 17.4 (EnterpriseDB Advanced Server 17.4.0)" + built},
		"OpenTenBase":  {"PostgreSQL 10.0 OpenTenBase V2.5" + built},
		"OrioleDB":     {"OrioleDB 18.4 (OrioleDB 1.8-beta16)" + built},
		"Babelfish":    {"Babelfish 17.7" + built},
		"openHalo":     {"openHalo 14.18" + built},

		"PostgreSQL 14.1":                   {"PostgreSQL 14.1"},
		"PostgreSQL 16.4" + built + " of X": {"PostgreSQL 16.4" + built + " of X"},
	},
	sqlfence.MySQL: {
		"TiDB":        {"8.0.11-TiDB-v7.5.0|TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible"},
		"Vitess":      {"8.0.30-Vitess|Version: 19.0.0 (Git revision 1)"},
		"SingleStore": {"5.7.32|SingleStoreDB source distribution (compatible; MySQL Enterprise)", "5.5.58|MemSQL source distribution (compatible; MySQL Enterprise)", "5.7.32|Source distribution|memsql_version"},
		"Dolt":        {"8.0.33|Dolt"},
		"OceanBase":   {"5.7.25-OceanBase-v4.2.1.0|OceanBase 4.2.1.0"},
		"StarRocks":   {"8.0.33|StarRocks version 3.2.3"},
		"Doris":       {"5.7.99|Doris version doris-2.0.3-rc06-37d31a5"},
		"MatrixOne":   {"8.0.30-MatrixOne-v1.1.0|MatrixOne"},
		"Databend":    {"8.0.90-v1.2.300-nightly-4a2dd6f|Databend Query"},
		"ClickHouse":  {"23.8.2.7-ClickHouse|"},
		"PolarDB-X":   {"5.6.29-TDDL-5.4.12-16327949|", "5.7.25|PolarDB-X Server", "8.0.32-X-Cluster-8.4.19|Source distribution"},
		"Xpand":       {"5.0.45-Xpand-6.1.1|", "5.0.45|Clustrix"},
		"NDB Cluster": {"8.0.36-cluster|MySQL Cluster Community Server - GPL", "8.4.0|MySQL Cluster Community Server - GPL"},
		"greptimedb":  {"8.4.2-greptimedb-0.14.0|"},
		"txsql":       {"8.0.33-v25-txsql-22.6.3-20250328|Source distribution"},
		"PlanetScale": {"8.0.21-PlanetScale|"},
		"GoldenDB":    {"5.7.17-GoldenDB|"},

		"SomethingElse": {"SomethingElse|a server"},
	},
}

// ours are the version strings of PostgreSQL, MySQL and MariaDB from packagers and hosts.
var ours = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"PostgreSQL 13.23" + built,
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1)" + built,
		"PostgreSQL 16.14 (Ubuntu 16.14-0ubuntu0.24.04.1)" + built,
		"PostgreSQL 18beta1 (Debian 18~beta1-1.pgdg120+1)" + built,
		"PostgreSQL 19devel" + built,
		"PostgreSQL 17rc1 on x86_64-windows, compiled by msvc-19.41.34120, 64-bit",
		"PostgreSQL 16.1, compiled by Visual C++ build 1937, 64-bit",
		"PostgreSQL 14.10 (Homebrew) on aarch64-apple-darwin23.0.0, compiled by Apple clang version 15.0.0 (clang-1500.0.40.1), 64-bit",
		"PostgreSQL 16.4 (Postgres.app) on aarch64-apple-darwin21.6.0, compiled by Apple clang version 14.0.0 (clang-1400.0.29.102), 64-bit",
		"PostgreSQL 15.4 on aarch64-unknown-linux-gnu, compiled by gcc (GCC) 9.5.0, 64-bit",                                     // Aurora, RDS
		"PostgreSQL 15.7 on x86_64-pc-linux-gnu, compiled by Debian clang version 12.0.1, 64-bit",                               // AlloyDB, Cloud SQL
		"PostgreSQL 17.5 (84bec44) on aarch64-unknown-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",     // Neon
		"PostgreSQL 16.4 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 13.2.0, 64-bit",                                          // Azure
		"PostgreSQL 14.9 (Ubuntu 14.9-201-yandex.55075.1d48ed0a7b)" + built,                                                     // Yandex
		"PostgreSQL 16.4 - Percona Distribution" + built,                                                                        // Percona
		"PostgreSQL 18.4 - Percona Server for PostgreSQL 18.4.1" + built,                                                        // Percona
		"PostgreSQL 16.4 on armv7l-unknown-linux-gnueabihf, compiled by gcc (Gentoo 4.9.3 p1.5, pie-0.6.4) 4.9.3, 32-bit",       // a comma
		"PostgreSQL 16.4 on x86_64-pc-linux-gnu, compiled by emcc (Emscripten gcc/clang-like replacement) 3.1.61 (67f), 32-bit", // PGlite
	},
	sqlfence.MySQL: {
		"8.4.3|MySQL Community Server - GPL",
		"9.7.4-2|(Debian)",
		"8.0.36-0ubuntu0.22.04.1|(Ubuntu)",
		"5.7.42-0ubuntu0.18.04.1-log|(Ubuntu)",
		"8.0.4-rc-log|MySQL Community Server (GPL)",
		"5.7.44-enterprise-commercial-advanced-log|MySQL Enterprise Server - Advanced Edition (Commercial)",
		"8.4.0-u3-cloud|MySQL Enterprise - Cloud",
		"8.0.32|Source distribution", // Aurora, RDS
		"5.7.44-rds.20240529-log|Source distribution",
		"8.0.37-azure|MySQL Community Server - GPL",
		"8.0.31-google|(Google)",
		"8.0.36-28|Percona Server (GPL), Release 28",
		"5.7.44-48-log|Percona Server (GPL), Release 48, Revision 497f936a373",
		"11.4.2-MariaDB-ubu2404-log|mariadb.org binary",
		"11.8.9-MariaDB-0+deb13u1 from Debian|-- Please help get to 10k stars at https://github.com/MariaDB/Server",
		"10.6.16-MariaDB-1:10.6.16+maria~ubu2204|mariadb.org binary distribution",
		"10.11.6-MariaDB-log|managed by https://aws.amazon.com/rds/",
		"5.5.5-10.11.6-MariaDB-log|MariaDB Server", // as some proxies pass it on from the greeting
		"11.8.3-MariaDB-enterprise|MariaDB Enterprise Server",
	},
}

// eachServer calls do for all texts, with the name by which the server is refused, or "".
func eachServer(d sqlfence.Dialect, do func(says, name string)) {
	for name, texts := range servers[d] {
		for _, says := range texts {
			do(says, name)
		}
	}
	for _, says := range ours[d] {
		do(says, "")
	}
}

// For each word by which the code recognizes a server, the list has a version string with this word.
func TestG11EachNameIsTested(t *testing.T) {
	for d, dialect := range map[sqlfence.Dialect]*session.Dialect{sqlfence.Postgres: postgres.Session, sqlfence.MySQL: mysql.Session} {
		if len(dialect.Others) == 0 {
			t.Fatal("no names")
		}
		for _, other := range dialect.Others {
			tested := false
			for _, says := range servers[d][other.Name] {
				tested = tested || strings.Contains(strings.ToLower(says), other.Word)
			}
			if !tested {
				t.Errorf("no server called %q says %q", other.Name, other.Word)
			}
			for _, says := range ours[d] {
				if strings.Contains(strings.ToLower(says), other.Word) {
					t.Errorf("%s has %q in it", says, other.Word)
				}
			}
		}
	}
}
