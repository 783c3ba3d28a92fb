package fencegrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencehttp"
)

// Key is the key of the metadata with a call's tokens.
const Key = "fencing-tokens"

// DialOptions returns a client's interceptors, in addition to other interceptors of the client. The interceptors send
// the tokens of a call's context, and turn the refusals of a server with [ServerOptions] into the original errors. A
// token that isn't valid is [sqlfence.ErrInvalid], and the call isn't sent. If gRPC itself retries a call that the
// server has received, the server rejects the equal signature: retry in the program, which signs the call again.
func DialOptions(proof fencehttp.Proof) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			ctx, err := seal(ctx, proof, method)
			if err != nil {
				return err
			}
			return received(invoke(ctx, method, request, reply, conn, options...))
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			ctx, err := seal(ctx, proof, method)
			if err != nil {
				return nil, err
			}
			s, err := open(ctx, desc, conn, method, options...)
			if err != nil {
				return nil, received(err)
			}
			return clientStream{s}, nil
		}),
	}
}

// ServerOptions returns a server's interceptors, in addition to other interceptors of the server. The interceptors put
// the tokens of a call into the context of its handler, and send the handler's refusals to the client. If a call has no
// tokens, the fence refuses its writes. A call with invalid tokens fails with Unauthenticated before the handler.
func ServerOptions(proof fencehttp.Proof) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo,
			handle grpc.UnaryHandler) (any, error) {
			ctx, err := open(ctx, proof, info.FullMethod)
			if err != nil {
				return nil, err
			}
			reply, err := handle(ctx, request)
			return reply, sent(err)
		}),
		grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo,
			handle grpc.StreamHandler) error {
			ctx, err := open(s.Context(), proof, info.FullMethod)
			if err != nil {
				return err
			}
			return sent(handle(server, serverStream{s, ctx}))
		}),
	}
}

// seal returns ctx with its tokens, signed for the method, in the outgoing metadata. It replaces any value under [Key],
// for example if a program passes on the metadata of an incoming call, so that only tokens of ctx are sent.
func seal(ctx context.Context, proof fencehttp.Proof, method string) (context.Context, error) {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	tokens := sqlfence.FencesFrom(ctx)
	md.Delete(Key)
	if len(tokens) > 0 {
		value, err := proof.Seal(method, tokens...)
		if err != nil {
			return nil, err
		}
		md = metadata.Join(md, metadata.Pairs(Key, value))
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// open returns the context with the tokens of the call's metadata.
func open(ctx context.Context, proof fencehttp.Proof, method string) (context.Context, error) {
	values := metadata.ValueFromIncomingContext(ctx, Key)
	switch {
	case len(values) == 0:
		return ctx, nil
	case len(values) > 1:
		return nil, status.Errorf(codes.Unauthenticated, "fencegrpc: the call has %d values of %s", len(values), Key)
	}
	tokens, err := proof.Open(method, values[0])
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	return sqlfence.WithFence(ctx, tokens...), nil
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s serverStream) Context() context.Context { return s.ctx }

// A clientStream turns the errors of a stream into the server's refusals; io.EOF stays unchanged.
type clientStream struct{ grpc.ClientStream }

func (s clientStream) SendMsg(m any) error { return received(s.ClientStream.SendMsg(m)) }
func (s clientStream) RecvMsg(m any) error { return received(s.ClientStream.RecvMsg(m)) }

func (s clientStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, received(err)
}
