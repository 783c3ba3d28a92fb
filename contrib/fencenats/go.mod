module github.com/sqlfence/sqlfence/contrib/fencenats

go 1.26.0

require github.com/sqlfence/sqlfence v0.0.0

require (
	github.com/ngrok/sqlmw v0.0.0-20220520173518-97c9c04efc79 // indirect
	golang.org/x/text v0.41.0 // indirect
)
