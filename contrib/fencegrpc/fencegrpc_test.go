package fencegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencegrpc"
	"github.com/sqlfence/sqlfence/contrib/fencehttp"
)

var books = sqlfence.Token{Name: "books", Value: 42}

// A service answers with what handle returns, by a single call and by a stream.
type service struct {
	health.UnimplementedHealthServer
	handle func(ctx context.Context) error
}

func (s *service) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	return new(health.HealthCheckResponse), s.handle(ctx)
}

func (s *service) Watch(_ *health.HealthCheckRequest, stream health.Health_WatchServer) error {
	if err := stream.Send(new(health.HealthCheckResponse)); err != nil {
		return err
	}
	return s.handle(stream.Context())
}

// A caller calls the service in one way.
type caller func(ctx context.Context, c health.HealthClient) error

var callers = map[string]caller{
	"call": func(ctx context.Context, c health.HealthClient) error {
		_, err := c.Check(ctx, new(health.HealthCheckRequest))
		return err
	},
	"stream": func(ctx context.Context, c health.HealthClient) error {
		s, err := c.Watch(ctx, new(health.HealthCheckRequest))
		for err == nil {
			_, err = s.Recv()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	},
}

func newSigner(t testing.TB) *fencehttp.Signer {
	t.Helper()
	s, err := fencehttp.NewSigner([][]byte{[]byte(strings.Repeat("s", fencehttp.MinSecret))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, server fencehttp.Proof, handle func(ctx context.Context) error, client ...grpc.DialOption) health.HealthClient {
	t.Helper()
	s := grpc.NewServer(fencegrpc.ServerOptions(server)...)
	health.RegisterHealthServer(s, &service{handle: handle})
	listener := bufconn.Listen(1 << 16)
	go func() { _ = s.Serve(listener) }() // returns when the test stops it
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:bufconn", append(client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return health.NewHealthClient(conn)
}

func TestTokensArrive(t *testing.T) {
	for _, proof := range []fencehttp.Proof{newSigner(t), fencehttp.Unsigned()} {
		for name, call := range callers {
			var got []sqlfence.Token
			client := serve(t, proof, func(ctx context.Context) error { got = sqlfence.FencesFrom(ctx); return nil },
				fencegrpc.DialOptions(proof)...)
			if err := call(sqlfence.WithFence(t.Context(), books), client); err != nil || len(got) != 1 || got[0] != books {
				t.Errorf("%T, %s: %v, %v", proof, name, got, err)
			}
			// A token from other metadata isn't passed on.
			foreign := metadata.AppendToOutgoingContext(t.Context(), fencegrpc.Key, "books:000000000000001", "other", "x")
			if err := call(foreign, client); err != nil || got != nil {
				t.Errorf("%T, %s: without a token: %v, %v", proof, name, got, err)
			}
			if err := call(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books"}), client); !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("%T, %s: an invalid token: %v", proof, name, err)
			}
		}
	}
}

func TestServerRefuses(t *testing.T) {
	signer := newSigner(t)
	for name, call := range callers {
		client := serve(t, signer, func(context.Context) error { t.Error("the handler was called"); return nil })
		other, err := signer.Seal("/another/Method", books)
		if err != nil {
			t.Fatal(err)
		}
		sealed := func(secret string, options ...fencehttp.SignerOption) string {
			s, err := fencehttp.NewSigner([][]byte{[]byte(strings.Repeat(secret, fencehttp.MinSecret))}, options...)
			if err != nil {
				t.Fatal(err)
			}
			method := map[string]string{"call": health.Health_Check_FullMethodName, "stream": health.Health_Watch_FullMethodName}[name]
			value, err := s.Seal(method, books)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		forged, expired := sealed("x"), sealed("s", fencehttp.Lifetime(time.Millisecond))
		for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); {
			runtime.Gosched()
		}
		for what, values := range map[string][]string{
			"forged": {forged}, "expired": {expired},
			"unsigned": {"books:000000000000042"}, "of another method": {other}, "two": {other, other},
		} {
			ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{fencegrpc.Key: values})
			if err := call(ctx, client); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

func TestReplayIsRefused(t *testing.T) {
	signer, calls := newSigner(t), 0
	client := serve(t, signer, func(context.Context) error { calls++; return nil })
	value, err := signer.Seal(health.Health_Check_FullMethodName, books)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []codes.Code{codes.OK, codes.Unauthenticated} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), fencegrpc.Key, value)
		if err := callers["call"](ctx, client); status.Code(err) != want || calls != 1 {
			t.Errorf("attempt %d: %v, %d calls", i, err, calls)
		}
	}
}

// For each refusal the client gets the service's error and a status.
func TestRefusalsArrive(t *testing.T) {
	signer := newSigner(t)
	for name, call := range callers {
		var err error
		client := serve(t, signer, func(context.Context) error { return err }, fencegrpc.DialOptions(signer)...)
		for is, want := range map[error]codes.Code{
			sqlfence.ErrStale: codes.FailedPrecondition, sqlfence.ErrNotIssued: codes.FailedPrecondition,
			sqlfence.ErrUnknownName: codes.FailedPrecondition, sqlfence.ErrNoFence: codes.FailedPrecondition,
			sqlfence.ErrNoSerial: codes.FailedPrecondition, sqlfence.ErrConflict: codes.Aborted, sqlfence.ErrGone: codes.Aborted,
			sqlfence.ErrLocked: codes.Aborted, sqlfence.ErrOutOfScope: codes.PermissionDenied,
			sqlfence.ErrUnknownOutcome: codes.Unknown,
		} {
			err = fmt.Errorf("saving a secret: %w", is)
			got := call(t.Context(), client)
			if s, ok := status.FromError(got); !errors.Is(got, is) || !ok || s.Code() != want || strings.Contains(s.Message(), "secret") {
				t.Errorf("%s, %v: %v", name, is, got)
			}
		}
		err = status.Error(codes.NotFound, "x")
		if got := call(t.Context(), client); status.Code(got) != codes.NotFound || errors.Is(got, sqlfence.ErrStale) {
			t.Errorf("%s: %v", name, got)
		}
		err = nil
		if got := call(t.Context(), client); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
