// SPDX-License-Identifier: Apache-2.0
// Proved of any front: its operation is passed once, to the store of its key and to no other, or if
// it is a flush_all once to each store; its key and value are passed to the same store, all of them
// and no more; and only then the next one is granted. Of results: one that a store gives is taken by
// one front, the one that has the store next and is the store's next one.
  logic f_started = 1'b0;
  lane_t f_front;                          // any front: chosen by an input that is free in reset
  always_ff @(posedge clk) if (rst) f_front <= op[0].op.opaque[LOG-1:0];
  logic f_waits;                           // it offers an operation
  hashed_t f_op;
  logic [LANES-1:0] f_got;                 // stores that have been passed it
  logic [5:0] f_keys, f_kbeats;
  logic [8:0] f_values, f_vbeats;
  logic [LANES-1:0] f_gives, f_key_gives, f_value_gives;  // by store, what it is passed of this front
  logic [LANES-1:0] f_takers;
  wire lane_t f_to = to[f_front];
  always_comb begin
    for (int s = 0; s < LANES; s++) begin
      f_gives[s] = s_op_valid[s] && s_op_ready[s] && from[s] == f_front;
      f_key_gives[s] = s_key_valid[s] && s_key_ready[s] && from[s] == f_front;
      f_value_gives[s] = s_value_valid[s] && s_value_ready[s] && from[s] == f_front;
    end
  end
  wire [LANES-1:0] f_home = LANES'(1) << f_to;

  always_comb begin
    if (!f_started) assume (rst);
    if (f_waits) assume (op_valid[f_front] && op[f_front] == f_op);
    for (int f = 0; f < LANES; f++)
      if (op[f].op.op == OP_FLUSH) assume (op[f].op.kbeats == 6'd0 && op[f].op.vbeats == 9'd0);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    f_waits <= !rst && op_valid[f_front] && !op_ready[f_front];
    f_op <= op[f_front];
    if (front_granted[f_front]) begin
      f_got <= '0;
      f_keys <= '0;
      f_values <= '0;
      f_kbeats <= op[f_front].op.kbeats;
      f_vbeats <= op[f_front].op.vbeats;
    end else begin
      f_got <= f_got | f_gives;
      if (f_key_gives != '0) f_keys <= f_keys + 6'd1;
      if (f_value_gives != '0) f_values <= f_values + 9'd1;
    end
    if (f_started && !rst) begin
      for (int s = 0; s < LANES; s++) begin
        if (busy[s]) assert (linked[from[s]]);
        if (busy[s] && !flushes[from[s]]) assert (to[from[s]] == lane_t'(s));
        if (busy[s] && flushes[from[s]]) assert (!given[from[s]]);
        if (store_granted[s]) assert (store_room[s] && !busy[s] && wants[granted[s]]);
      end
      for (int f = 0; f < LANES; f++) begin
        if (linked[f] && !flushes[f]) assert (busy[to[f]] && from[to[f]] == lane_t'(f));
        if (front_granted[f]) assert (front_room[f] && !linked[f]);
      end
      // Any front's operation.
      if (linked[f_front]) begin
        if (!given[f_front]) assert (f_waits && f_to == home[f_front] && flushes[f_front] == (f_op.op.op == OP_FLUSH));
        if (flushes[f_front]) begin
          for (int s = 0; s < LANES; s++) assert (f_got[s] == !(busy[s] && from[s] == f_front));
          assert (f_got != '1 && f_kbeats == 6'd0 && f_vbeats == 9'd0);
        end else begin
          assert (f_got == (given[f_front] ? f_home : '0));
        end
        assert (f_keys + key_left[f_front] == f_kbeats && f_values + value_left[f_front] == f_vbeats);
        assert (f_keys <= f_kbeats && f_values <= f_vbeats);
      end
      assert ((f_gives & f_got) == '0 || !linked[f_front]);
      if (f_gives != '0) assert (linked[f_front] && (flushes[f_front] || f_gives == f_home));
      if (op_passed[f_front]) assert ((f_gives | f_got) == (flushes[f_front] ? '1 : f_home));
      assert (f_key_gives == (key_passed[f_front] ? f_home : '0));
      assert (f_value_gives == (value_passed[f_front] ? f_home : '0));
      if (finished[f_front]) begin
        assert (f_keys + {5'd0, key_passed[f_front]} == f_kbeats);
        assert (f_values + {8'd0, value_passed[f_front]} == f_vbeats);
      end
      // Results.
      for (int s = 0; s < LANES; s++) begin
        for (int f = 0; f < LANES; f++)
          f_takers[f] = result_passed[f] && (meets_all[f] ? front_pop[f] : source[f] == lane_t'(s));
        if (r_valid[s] && r_ready[s]) assert (f_takers == LANES'(1) << next_front[s] && store_next_valid[s]);
        else assert (f_takers == '0);
        if (store_pop[s]) assert (store_next_valid[s] && front_pop[next_front[s]]);
      end
    end
  end
