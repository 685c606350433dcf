package talosapi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrSilent is the error of a call that got no answer in time.
var ErrSilent = errors.New("timed out")

// Message returns the error of a call without the text that gRPC adds.
func Message(err error) error {
	converted, ofGRPC := status.FromError(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), converted.Code() == codes.DeadlineExceeded:
		return ErrSilent
	case ofGRPC:
		return errors.New(converted.Message())
	}
	return err
}
