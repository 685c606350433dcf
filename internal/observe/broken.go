package observe

import (
	"context"
	"crypto/x509"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/health"
)

// errUnknownKind is part of the errors about a kind that the API server does not serve.
var errUnknownKind = errors.New("the API server does not know")

// temporary reports whether the next attempt to read may succeed.
func temporary(err *health.Broken) bool { return err != nil && !err.Hopeless && !err.Unknown }

// asked returns an answer. If the first answer is a failure, it asks once more: with --once, nothing asks again, and a busy node may not
// answer in time.
func asked[T any](ctx context.Context, first bool, ask func() T, failed func(T) bool) T {
	answer := ask()
	if first && failed(answer) && ctx.Err() == nil {
		answer = ask()
	}
	return answer
}

// broken converts an error for the checks. Refused credentials and certificates of an unknown authority are hopeless.
func broken(err error) *health.Broken {
	var authority x509.UnknownAuthorityError
	hopeless := errors.As(err, &authority) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
	if s, ok := status.FromError(err); ok {
		hopeless = hopeless || s.Code() == codes.Unauthenticated || s.Code() == codes.PermissionDenied
		return &health.Broken{Reason: s.Code().String() + ": " + s.Message(), Hopeless: hopeless}
	}
	unknown := errors.Is(err, errUnknownKind)
	var answer apierrors.APIStatus
	return &health.Broken{Reason: err.Error(), Hopeless: hopeless, Unknown: unknown, Gone: !hopeless && !unknown && !errors.As(err, &answer)}
}
