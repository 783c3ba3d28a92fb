module github.com/sqlfence/sqlfence/contrib/fencegrpc

go 1.26.0

require (
	github.com/sqlfence/sqlfence v0.0.0
	github.com/sqlfence/sqlfence/contrib/fencehttp v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa
	google.golang.org/grpc v1.83.2
)

require (
	github.com/ngrok/sqlmw v0.0.0-20220520173518-97c9c04efc79 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
