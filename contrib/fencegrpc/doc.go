// Package fencegrpc carries fencing tokens over gRPC, from the process that holds the lock to the process that writes.
//
//	signer, err := fencehttp.NewSigner([][]byte{secret}) // the same secret in both
//	conn, err := grpc.NewClient(address, append(fencegrpc.DialOptions(signer), credentials)...)
//	server := grpc.NewServer(fencegrpc.ServerOptions(signer)...)
//
// A client sends the tokens of a call's context in the metadata, signed for the method and for one use
// ([fencehttp.Signer]). A server puts the tokens into the context of its handler, which fences the handler's writes. If
// the handler returns a refusal, the client gets an error of the same kind: errors.Is finds [sqlfence.ErrStale], so the
// holder learns that its lock is lost.
//
// With the RPC library Connect, use [fencehttp.Handler] and [fencehttp.Transport] to carry the tokens, and [Code] for the
// status code that the server returns for an error of sqlfence.
package fencegrpc
