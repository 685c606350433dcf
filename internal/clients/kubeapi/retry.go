package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The pause before a request is sent again is doubled each time.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// Retry calls f, which sends a request, until it succeeds or returns an error that is not temporary. Between two calls of f it calls again
// with the error, unless again is nil. If ctx ends, the error has the cause of the end and the last error of f.
func Retry(ctx context.Context, again func(error), f func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := f()
		if err == nil || !Temporary(err) {
			return err
		}
		if again != nil && ctx.Err() == nil {
			again(err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// Temporary reports whether the same request may succeed later: the API server did not answer, or is busy or broken.
func Temporary(err error) bool { return !Refused(err) || apierrors.IsTooManyRequests(err) }

// Refused reports whether an API server has decided against a request. After any other error it is unknown whether the request had an
// effect.
func Refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}
