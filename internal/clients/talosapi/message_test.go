package talosapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMessage_HasNoTextOfGRPC(t *testing.T) {
	require.NoError(t, Message(nil))
	require.EqualError(t, Message(status.Error(codes.Unavailable, "connection refused")), "connection refused")
	require.EqualError(t, Message(status.Error(codes.Unknown, "unhealthy cluster")), "unhealthy cluster")
	require.ErrorIs(t, Message(status.Error(codes.DeadlineExceeded, "late")), ErrSilent)
	require.EqualError(t, Message(fmt.Errorf("read: %w", context.DeadlineExceeded)), "timed out")
	require.EqualError(t, Message(errors.New("plain")), "plain")
}
