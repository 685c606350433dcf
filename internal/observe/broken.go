package observe

import (
	"crypto/x509"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/health"
)

// errUnknownKind is in the errors about a kind of objects that the API server does not serve.
var errUnknownKind = errors.New("the API server does not know")

// broken turns an error into what a check reads. Refused credentials and certificates of an unknown authority do not heal by themselves.
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
