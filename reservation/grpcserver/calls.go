package grpcserver

import (
	"context"
	"errors"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "urlserver/api/reservation"
	"urlserver/reservation"
)

// failure returns the gRPC error for an error of the store.
func failure(err error) error {
	code := codes.Unavailable
	switch {
	case err == nil:
		return nil
	case errors.Is(err, reservation.ErrStale):
		code = codes.FailedPrecondition
	case errors.Is(err, reservation.ErrNotNow), errors.Is(err, reservation.ErrUnknown):
		code = codes.NotFound
	case errors.Is(err, reservation.ErrInvalid):
		code = codes.InvalidArgument
	case errors.Is(err, reservation.ErrBroken):
		code = codes.DataLoss
	case errors.Is(err, reservation.ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Error(code, err.Error())
}

// span converts ms to a duration. It returns a duration longer than any allowed one if ms does not
// fit.
func span(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(max(ms, 0)) * time.Millisecond
}

func message(r reservation.Reservation) *pb.Reservation {
	return &pb.Reservation{Host: r.Host, Group: r.Group, Token: r.Token, LeaseEndMs: r.LeaseEnd.UnixMilli()}
}

func (s *Server) AddHost(ctx context.Context, req *pb.AddHostRequest) (*pb.AddHostResponse, error) {
	added, err := s.cfg.Store.AddHost(ctx, req.Host, reservation.Time(req.EarliestMs))
	return &pb.AddHostResponse{Added: added}, failure(err)
}

func (s *Server) DeleteHost(ctx context.Context, req *pb.DeleteHostRequest) (*pb.Empty, error) {
	return &pb.Empty{}, failure(s.cfg.Store.DeleteHost(ctx, req.Host, req.Token,
		reservation.Time(req.NextMs)))
}

func (s *Server) SetAlias(ctx context.Context, req *pb.Alias) (*pb.Empty, error) {
	return &pb.Empty{}, failure(s.cfg.Store.SetAlias(ctx, req.Alias, req.Hosts))
}

func (s *Server) JoinAlias(ctx context.Context, req *pb.Alias) (*pb.BindResponse, error) {
	aliases, err := s.cfg.Store.JoinAlias(ctx, req.Alias, req.Hosts)
	return &pb.BindResponse{Groups: aliases}, failure(err)
}

func (s *Server) GetAlias(ctx context.Context, req *pb.HostRequest) (*pb.Alias, error) {
	alias, hosts, err := s.cfg.Store.GetAlias(ctx, req.Host)
	return &pb.Alias{Alias: alias, Hosts: hosts}, failure(err)
}

func (s *Server) ReserveNextHost(ctx context.Context,
	req *pb.ReserveNextHostRequest) (*pb.ReserveNextHostResponse, error) {
	most := int(min(req.Max, reservation.MaxReserve))
	list, err := s.cfg.Store.ReserveNextHost(ctx, span(req.LeaseMs), most, req.Holder)
	answer := &pb.ReserveNextHostResponse{}
	for _, r := range list {
		answer.Reservations = append(answer.Reservations, message(r))
	}
	return answer, failure(err)
}

func (s *Server) TryReserve(ctx context.Context, req *pb.TryReserveRequest) (*pb.Reservation, error) {
	r, err := s.cfg.Store.TryReserve(ctx, req.Host, span(req.LeaseMs), req.Holder)
	if err != nil {
		return nil, failure(err)
	}
	return message(r), nil
}

func (s *Server) ExtendHost(ctx context.Context, req *pb.ExtendHostRequest) (*pb.ExtendHostResponse, error) {
	end, err := s.cfg.Store.ExtendHost(ctx, req.Host, req.Token, span(req.LeaseMs))
	return &pb.ExtendHostResponse{LeaseEndMs: end.UnixMilli()}, failure(err)
}

func (s *Server) ReleaseHost(ctx context.Context, req *pb.ReleaseHostRequest) (*pb.Empty, error) {
	return &pb.Empty{}, failure(s.cfg.Store.ReleaseHost(ctx, req.Host, req.Token,
		reservation.Time(req.NextMs)))
}

func (s *Server) Bind(ctx context.Context, req *pb.BindRequest) (*pb.BindResponse, error) {
	bindings := make([]reservation.Binding, 0, len(req.Bindings))
	for _, b := range req.Bindings {
		bindings = append(bindings, reservation.Binding{Host: b.GetHost(), Group: b.GetGroup()})
	}
	all, err := s.cfg.Store.Bind(ctx, bindings, span(req.TtlMs))
	resp := &pb.BindResponse{}
	for _, b := range all {
		resp.Groups, resp.LeftMs = append(resp.Groups, b.Group), append(resp.LeftMs, b.Left.Milliseconds())
	}
	return resp, failure(err)
}

func (s *Server) Stats(ctx context.Context, _ *pb.Empty) (*pb.StatsResponse, error) {
	st, err := s.cfg.Store.Stats(ctx)
	return &pb.StatsResponse{
		Hosts: st.Hosts, Waiting: st.Waiting, Ready: st.Ready, Busy: st.Busy, Aliases: st.Aliases,
		Repaired: st.Repaired,
	}, failure(err)
}

func (s *Server) Explain(ctx context.Context, req *pb.HostRequest) (*pb.ExplainResponse, error) {
	x, err := s.cfg.Store.Explain(ctx, req.Host)
	return &pb.ExplainResponse{
		Host: x.Host, Group: x.Group, State: string(x.State), UntilMs: reservation.Millis(x.Until),
		Rule: x.Rule, Holder: x.Holder,
	}, failure(err)
}
