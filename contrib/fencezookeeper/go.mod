module github.com/sqlfence/sqlfence/contrib/fencezookeeper

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/sqlfence/sqlfence v0.0.0
)

require (
	github.com/ngrok/sqlmw v0.0.0-20220520173518-97c9c04efc79 // indirect
	golang.org/x/text v0.41.0 // indirect
)
