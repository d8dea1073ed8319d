// SPDX-License-Identifier: Apache-2.0
//
// Joins the fronts of several lanes with their stores. Each key belongs to one store. An operation is
// granted the store of its key, and its key and value follow it there; stores are granted on their
// own, at most one operation a cycle each. Results go back in the order of each front's operations.
//
// Nothing can wait in a circle: grants have an order, that of their cycles, and every store and
// every front takes its operations in that order. The oldest operation without a result is the next
// one of its store and of its front.
//
// flush_all is granted all stores in one cycle, and answered when all have done it. Operations
// without a key go to the store of their front's lane.
module lane_switch
  import wc_pkg::*;
#(
    parameter int LANES = 8,     // a power of 2
    parameter int ORDER_LOG = 5  // operations under way of a front, or of a store
) (
    input  logic                    clk,
    input  logic                    rst,
    // Operations of the fronts.
    input  logic [LANES-1:0]        op_valid,
    output logic [LANES-1:0]        op_ready,
    input  hashed_t                 op[LANES],
    input  logic [LANES-1:0]        key_valid,
    output logic [LANES-1:0]        key_ready,
    input  logic [63:0]             key_data[LANES],
    input  logic [LANES-1:0]        value_valid,
    output logic [LANES-1:0]        value_ready,
    input  logic [63:0]             value_data[LANES],
    // The same, for the stores.
    output logic [LANES-1:0]        s_op_valid,
    input  logic [LANES-1:0]        s_op_ready,
    output hashed_t                 s_op[LANES],
    output logic [LANES-1:0]        s_key_valid,
    input  logic [LANES-1:0]        s_key_ready,
    output logic [63:0]             s_key_data[LANES],
    output logic [LANES-1:0]        s_value_valid,
    input  logic [LANES-1:0]        s_value_ready,
    output logic [63:0]             s_value_data[LANES],
    // Results of the stores.
    input  logic [LANES-1:0]        r_valid,
    output logic [LANES-1:0]        r_ready,
    input  result_t                 r[LANES],
    input  logic [LANES-1:0]        r_key_valid,
    output logic [LANES-1:0]        r_key_ready,
    input  logic [63:0]             r_key_data[LANES],
    input  logic [LANES-1:0]        r_value_valid,
    output logic [LANES-1:0]        r_value_ready,
    input  logic [63:0]             r_value_data[LANES],
    // The same, for the fronts.
    output logic [LANES-1:0]        f_valid,
    input  logic [LANES-1:0]        f_ready,
    output result_t                 f_result[LANES],
    output logic [LANES-1:0]        f_key_valid,
    input  logic [LANES-1:0]        f_key_ready,
    output logic [63:0]             f_key_data[LANES],
    output logic [LANES-1:0]        f_value_valid,
    input  logic [LANES-1:0]        f_value_ready,
    output logic [63:0]             f_value_data[LANES],
    output logic                    idle
);
  localparam int LOG = $clog2(LANES);
  typedef logic [LOG-1:0] lane_t;

  // --- Grants.
  logic [LANES-1:0] busy;      // stores that an operation is passed to
  lane_t from[LANES];          // its front
  logic [LANES-1:0] linked;    // fronts whose operation is passed
  lane_t to[LANES];
  logic [LANES-1:0] flushes;   // to all stores
  logic [LANES-1:0] given;     // the operation itself has been passed
  logic [5:0] key_left[LANES];
  logic [8:0] value_left[LANES];
  lane_t turn[LANES];          // the front that a store grants first

  logic [LANES-1:0] wants, wants_flush, front_room, store_room;
  lane_t home[LANES];          // the store of the operation's key
  always_comb begin
    for (int f = 0; f < LANES; f++) begin
      home[f] = has_key(op[f].op.op) ? op[f].row_hash[31-:LOG] : lane_t'(f);
      wants[f] = op_valid[f] && !linked[f] && front_room[f];
      wants_flush[f] = wants[f] && op[f].op.op == OP_FLUSH;
    end
  end
  logic [LANES-1:0] front_granted, store_granted;
  lane_t granted[LANES];       // by store: the front
  lane_t flush_front;
  lane_t candidate[LANES];     // the front to look at, in the order of turns
  always_comb begin
    flush_front = '0;
    for (int f = LANES - 1; f >= 0; f--) if (wants_flush[f]) flush_front = lane_t'(f);
  end
  always_comb begin
    front_granted = '0;
    store_granted = '0;
    for (int s = 0; s < LANES; s++) begin
      granted[s] = '0;
      candidate[s] = '0;
    end
    if (wants_flush != '0) begin
      if (busy == '0 && store_room == '1) begin
        store_granted = '1;
        front_granted[flush_front] = 1'b1;
        for (int s = 0; s < LANES; s++) granted[s] = flush_front;
      end
    end else begin
      for (int s = 0; s < LANES; s++) begin
        for (int i = LANES - 1; i >= 0; i--) begin
          candidate[s] = turn[s] + lane_t'(i);
          if (wants[candidate[s]] && home[candidate[s]] == lane_t'(s) && !busy[s] && store_room[s]) begin
            store_granted[s] = 1'b1;
            granted[s] = candidate[s];
          end
        end
        if (store_granted[s]) front_granted[granted[s]] = 1'b1;
      end
    end
  end

  // --- The operation, its key and its value.
  logic [LANES-1:0] op_passed, key_passed, value_passed;  // by front
  always_comb begin
    for (int s = 0; s < LANES; s++) begin
      s_op[s] = op[from[s]];
      s_op_valid[s] = busy[s] && op_valid[from[s]] && !given[from[s]];
      s_key_data[s] = key_data[from[s]];
      s_key_valid[s] = busy[s] && key_left[from[s]] != 6'd0 && key_valid[from[s]];
      s_value_data[s] = value_data[from[s]];
      s_value_valid[s] = busy[s] && value_left[from[s]] != 9'd0 && value_valid[from[s]];
    end
    for (int f = 0; f < LANES; f++) begin
      op_ready[f] = linked[f] && !given[f];
      if (flushes[f]) begin
        for (int s = 0; s < LANES; s++) if (busy[s] && from[s] == lane_t'(f) && !s_op_ready[s]) op_ready[f] = 1'b0;
      end else begin
        op_ready[f] = op_ready[f] && s_op_ready[to[f]];
      end
      key_ready[f] = linked[f] && key_left[f] != 6'd0 && s_key_ready[to[f]];
      value_ready[f] = linked[f] && value_left[f] != 9'd0 && s_value_ready[to[f]];
    end
    op_passed = op_valid & op_ready;
    key_passed = key_valid & key_ready;
    value_passed = value_valid & value_ready;
  end
  logic [LANES-1:0] finished;  // by front
  always_comb begin
    for (int f = 0; f < LANES; f++)
      finished[f] = linked[f] && (given[f] || op_passed[f]) && key_left[f] == {5'd0, key_passed[f]} &&
                    value_left[f] == {8'd0, value_passed[f]};
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= '0;
      linked <= '0;
      flushes <= '0;
      given <= '0;
      for (int s = 0; s < LANES; s++) turn[s] <= '0;
    end else begin
      for (int f = 0; f < LANES; f++) begin
        if (op_passed[f]) given[f] <= 1'b1;
        if (key_passed[f]) key_left[f] <= key_left[f] - 6'd1;
        if (value_passed[f]) value_left[f] <= value_left[f] - 9'd1;
        if (finished[f]) linked[f] <= 1'b0;
        if (front_granted[f]) begin
          linked[f] <= 1'b1;
          flushes[f] <= op[f].op.op == OP_FLUSH;
          given[f] <= 1'b0;
          to[f] <= home[f];
          key_left[f] <= op[f].op.kbeats;
          value_left[f] <= op[f].op.vbeats;
        end
      end
      for (int s = 0; s < LANES; s++) begin
        if (busy[s] && (flushes[from[s]] ? s_op_valid[s] && s_op_ready[s] : finished[from[s]])) busy[s] <= 1'b0;
        if (store_granted[s]) begin
          busy[s] <= 1'b1;
          from[s] <= granted[s];
          turn[s] <= granted[s] + lane_t'(1);
        end
      end
    end
  end

  // --- The order of results, by front and by store.
  logic [LANES-1:0] front_next_valid, store_next_valid, front_pop, store_pop;
  logic [LANES-1:0] next_all;
  lane_t next_store[LANES], next_front[LANES];
  for (genvar i = 0; i < LANES; i++) begin : g_order
    fifo #(.W(LOG + 1), .LOG(ORDER_LOG)) f_front (
        .clk, .rst, .in_valid(front_granted[i]), .in_ready(front_room[i]),
        .in_data({op[i].op.op == OP_FLUSH, home[i]}), .out_valid(front_next_valid[i]),
        .out_ready(front_pop[i]), .out_data({next_all[i], next_store[i]})
    );
    fifo #(.W(LOG), .LOG(ORDER_LOG)) f_store (
        .clk, .rst, .in_valid(store_granted[i]), .in_ready(store_room[i]), .in_data(granted[i]),
        .out_valid(store_next_valid[i]), .out_ready(store_pop[i]), .out_data(next_front[i])
    );
  end

  // --- Results, keys and values.
  logic [LANES-1:0] follows;    // the result has been passed, its key or value has not
  logic [5:0] r_key_left[LANES];
  logic [8:0] r_value_left[LANES];
  logic [LANES-1:0] meets, meets_all;  // the front's next store has the front as its next one
  lane_t source[LANES];
  always_comb begin
    for (int f = 0; f < LANES; f++) begin
      meets_all[f] = front_next_valid[f] && next_all[f];
      for (int s = 0; s < LANES; s++)
        if (!(store_next_valid[s] && next_front[s] == lane_t'(f) && r_valid[s])) meets_all[f] = 1'b0;
      source[f] = next_all[f] ? lane_t'(f) : next_store[f];
      meets[f] = front_next_valid[f] && !next_all[f] && store_next_valid[source[f]] &&
                 next_front[source[f]] == lane_t'(f);
      f_result[f] = r[source[f]];
      f_valid[f] = !follows[f] && ((meets[f] && r_valid[source[f]]) || meets_all[f]);
      f_key_data[f] = r_key_data[source[f]];
      f_key_valid[f] = meets[f] && r_key_valid[source[f]] &&
                       (follows[f] ? r_key_left[f] != 6'd0 : r_valid[source[f]] && f_ready[f] && r[source[f]].kbeats != 6'd0);
      f_value_data[f] = r_value_data[source[f]];
      f_value_valid[f] = meets[f] && follows[f] && r_value_left[f] != 9'd0 && r_value_valid[source[f]];
    end
  end
  logic [LANES-1:0] result_passed, r_key_passed, r_value_passed;
  assign result_passed = f_valid & f_ready;
  assign r_key_passed = f_key_valid & f_key_ready;
  assign r_value_passed = f_value_valid & f_value_ready;
  always_comb begin
    r_ready = '0;
    r_key_ready = '0;
    r_value_ready = '0;
    store_pop = '0;
    for (int f = 0; f < LANES; f++) begin
      if (follows[f])
        front_pop[f] = r_key_left[f] == {5'd0, r_key_passed[f]} && r_value_left[f] == {8'd0, r_value_passed[f]};
      else
        front_pop[f] = result_passed[f] && f_result[f].kbeats == {5'd0, r_key_passed[f]} && f_result[f].vbeats == 9'd0;
      if (meets_all[f]) begin
        if (front_pop[f]) begin
          r_ready = '1;
          store_pop = '1;
        end
      end else begin
        if (result_passed[f]) r_ready[source[f]] = 1'b1;
        if (r_key_passed[f]) r_key_ready[source[f]] = 1'b1;
        if (r_value_passed[f]) r_value_ready[source[f]] = 1'b1;
        if (front_pop[f]) store_pop[source[f]] = 1'b1;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      follows <= '0;
    end else begin
      for (int f = 0; f < LANES; f++) begin
        if (result_passed[f]) begin
          follows[f] <= !front_pop[f];
          r_key_left[f] <= f_result[f].kbeats - {5'd0, r_key_passed[f]};
          r_value_left[f] <= f_result[f].vbeats;
        end else if (follows[f]) begin
          follows[f] <= !front_pop[f];
          r_key_left[f] <= r_key_left[f] - {5'd0, r_key_passed[f]};
          r_value_left[f] <= r_value_left[f] - {8'd0, r_value_passed[f]};
        end
      end
    end
  end
  assign idle = linked == '0 && front_next_valid == '0 && store_next_valid == '0;

// (Its proof is read by slang, and the FIFOs' have their own.)
`ifdef FORMAL_LANE_SWITCH
  `include "lane_switch_formal.svh"
`endif
endmodule
