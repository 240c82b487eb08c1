package grpcguard

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"

	"urlserver/internal/netguard"
)

const stopWait = 5 * time.Second // for calls in progress

// Serve answers calls on l until ctx ends, and returns after they have ended: by themselves, or after
// stopWait by force. It calls stopping when ctx ends. It closes l. The error is nil unless l failed
// before ctx ended. guarded: clients need a token.
func Serve(ctx context.Context, server *grpc.Server, l net.Listener, guarded bool, stopping func()) error {
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		stopping()
		timer := time.AfterFunc(stopWait, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	})
	err := server.Serve(netguard.LimitListener(l, guarded))
	if unhook() {
		server.Stop()
		return err
	}
	<-stopped
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}
