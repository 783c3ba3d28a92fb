// Package fencehttp carries fencing tokens over HTTP, from the process that holds the lock to the process that writes.
//
//	signer, err := fencehttp.NewSigner([][]byte{secret}) // the same secret in both
//	client := &http.Client{Transport: fencehttp.Transport(nil, signer)} // sends the tokens of the request's context
//	server.Handler = fencehttp.Handler(mux, signer)                     // puts them into the context of the handler's request
//
// A handler that writes with its request's context is fenced then, and answers a refusal by [WriteError]: 409 for
// [sqlfence.ErrStale], 412 for a serial that has changed, 428 for a missing token. The client's [CheckResponse] turns
// the response into the original error, so the holder learns that its lock is lost.
//
// Any client could write a token into a header. So a [Signer] signs the token for one request: the server refuses a
// forged token, a token for a different request, and an old request. [Unsigned] is for networks in which each client is
// trusted.
//
// For a row version, a service sends [ETag], the client sends it back in If-Match, and [Handler] passes it to
// [sqlfence.WithSerial].
//
// The package doesn't encrypt: who can read a request can read its tokens, and use the signature once, for the same
// request. Use TLS.
package fencehttp
