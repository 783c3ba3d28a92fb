module github.com/sqlfence/sqlfence/contrib/fencegocron

go 1.26.0

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/sqlfence/sqlfence v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/ngrok/sqlmw v0.0.0-20220520173518-97c9c04efc79 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	golang.org/x/text v0.41.0 // indirect
)
