package fencegrpc

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencehttp"
)

// domain is the domain in a refusal's ErrorInfo. The reason in the ErrorInfo is the refusal's [fencehttp.Kind].
const domain = "sqlfence"

// Code returns the code of a refusal, and whether err is a refusal. The interceptors of [ServerOptions] use Code. A
// service of Connect can use Code, because Connect has the codes of gRPC.
//
//	ErrStale, ErrNotIssued, ErrUnknownName, ErrNoFence, ErrNoSerial   FailedPrecondition: the same call can't succeed
//	ErrConflict, ErrGone, ErrLocked                                   Aborted: read again, or wait
//	ErrOutOfScope                                                     PermissionDenied
//	ErrUnknownOutcome                                                 Unknown: the write may have been applied
func Code(err error) (code codes.Code, ok bool) {
	switch is := fencehttp.KindError(fencehttp.Kind(err)); is {
	case nil:
		return codes.OK, false
	case sqlfence.ErrUnknownOutcome:
		return codes.Unknown, true
	case sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrLocked:
		return codes.Aborted, true
	case sqlfence.ErrOutOfScope:
		return codes.PermissionDenied, true
	default:
		return codes.FailedPrecondition, true
	}
}

// sent returns the error that a server sends for a handler's error: for a refusal an error with the kind, but without
// table and token; any other error unchanged.
func sent(err error) error {
	code, ok := Code(err)
	if !ok {
		return err
	}
	kind := fencehttp.Kind(err)
	s, detailErr := status.New(code, fencehttp.KindError(kind).Error()).
		WithDetails(&errdetails.ErrorInfo{Domain: domain, Reason: kind})
	if detailErr != nil {
		return detailErr
	}
	return s.Err()
}

// A refusal is the client's error. It wraps the handler's error, for errors.Is, and gRPC's status, for status.FromError
// and errors.As.
type refusal struct{ is, status error }

func (r *refusal) Error() string   { return r.status.Error() }
func (r *refusal) Unwrap() []error { return []error{r.is, r.status} }

// GRPCStatus returns the status for status.FromError.
func (r *refusal) GRPCStatus() *status.Status { return status.Convert(r.status) }

// received turns an error made by sent into the refusal, on the client.
func received(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == domain {
			if is := fencehttp.KindError(info.GetReason()); is != nil {
				return &refusal{is, err}
			}
		}
	}
	return err
}
