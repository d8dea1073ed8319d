// SPDX-License-Identifier: Apache-2.0
//
// Stands between a front and a store and makes a cache of them, beside a host that has the items:
// - A get that is all of its datagram is looked up. If it hits, its result is the reply. Else the
//   datagram has no reply here, and the verdict on it is that the host answers.
// - What may change a key's item ends the copy of the key; a flush, and what the core does not
//   understand, ends all. The host answers.
// - Of other operations nothing is left. The host answers.
// - Copies, and flushes that miss_port asks for, go to the store between the operations of the wire.
//   A copy whose get a write has overtaken goes there as an operation that does nothing.
//
// Copies are made and ended in one order, that of the operations as they are handed to the store.
module copy_policy
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        tick,           // once a second
    // From the front, and askers of its datagrams, no later than their operations.
    input  logic        asker_valid,
    input  asker_t      asker,
    input  logic        w_op_valid,
    output logic        w_op_ready,
    input  hashed_t     w_op,
    input  logic        w_key_valid,
    output logic        w_key_ready,
    input  logic [63:0] w_key,
    input  logic        w_value_valid,
    output logic        w_value_ready,
    input  logic [63:0] w_value,
    // Copies to be made: what fill_reader has found in a reply, and its asker.
    input  logic        f_op_valid,
    output logic        f_op_ready,
    input  hashed_t     f_op,
    input  asker_t      f_asker,
    input  logic        f_key_valid,
    output logic        f_key_ready,
    input  logic [63:0] f_key,
    input  logic        f_value_valid,
    output logic        f_value_ready,
    input  logic [63:0] f_value,
    input  logic        f_other,        // a reply to f_asker that is not copied
    // Flushes.
    input  logic        flush_valid,
    output logic        flush_done,
    // To the store.
    output logic        op_valid,
    input  logic        op_ready,
    output hashed_t     op,
    output logic        key_valid,
    input  logic        key_ready,
    output logic [63:0] key,
    output logic        value_valid,
    input  logic        value_ready,
    output logic [63:0] value,
    // From the store.
    input  logic        s_result_valid,
    output logic        s_result_ready,
    input  result_t     s_result,
    input  logic        s_key_valid,
    output logic        s_key_ready,
    input  logic [63:0] s_key,
    input  logic        s_value_valid,
    output logic        s_value_ready,
    input  logic [63:0] s_value,
    // To the front: one result of each datagram.
    output logic        result_valid,
    input  logic        result_ready,
    output result_t     result,
    output logic        key_out_valid,
    input  logic        key_out_ready,
    output logic [63:0] key_out,
    output logic        value_out_valid,
    input  logic        value_out_ready,
    output logic [63:0] value_out,
    // For miss_port, of each datagram.
    output logic        verdict_valid,
    output logic        verdict_answered,
    // For the counters.
    output logic        filled,
    output logic        fill_dead,
    output logic        flushed,
    output logic        idle
);
  localparam int ORDER_LOG = 7;

  // --- Operations to the store. What is offered stays offered.
  typedef enum logic [1:0] {FROM_WIRE, FROM_FILL, FROM_FLUSH} source_t;
  source_t source, kept;
  logic keeps, given, flush_asked;
  always_comb begin
    if (keeps) source = kept;
    else if (flush_valid && !flush_asked) source = FROM_FLUSH;
    else if (f_op_valid) source = FROM_FILL;
    else source = FROM_WIRE;
  end

  logic asked_valid;
  asker_t asked;
  logic first, sole, ends_copy, ends_all;
  assign sole = first && w_op.op.eod && w_op.op.op == OP_GET && !w_op.op.touch;
  assign ends_copy = is_write(w_op.op.op, w_op.op.touch);
  assign ends_all = w_op.op.op == OP_FLUSH || w_op.op.op == OP_ERROR;

  hashed_t from_wire, from_fill, from_flush;
  logic known, alive;
  always_comb begin
    from_wire = w_op;
    if (!sole) begin
      from_wire.op.op = ends_copy ? OP_DELETE : ends_all ? OP_FLUSH : OP_NOP;
      from_wire.op.exptime = '0;
      from_wire.op.cas_cmp = 1'b0;
      from_wire.op.touch = 1'b0;
    end
    from_fill = f_op;
    if (!alive) from_fill.op.op = OP_NOP;
    from_flush = '0;
    from_flush.op.op = OP_FLUSH;
  end

  logic order_ready, keys_ready, values_ready, has_room, offers;
  assign has_room = order_ready && keys_ready && values_ready;
  always_comb begin
    case (source)
      FROM_FLUSH: begin
        offers = 1'b1;
        op = from_flush;
      end
      FROM_FILL: begin
        offers = f_op_valid;
        op = from_fill;
      end
      default: begin
        offers = w_op_valid && asked_valid;
        op = from_wire;
      end
    endcase
  end
  assign op_valid = offers && has_room;
  assign given = op_valid && op_ready;
  assign w_op_ready = given && source == FROM_WIRE;
  assign f_op_ready = given && source == FROM_FILL;

  logic asker_room;  // always: contexts of at most 128 datagrams are in the core
  packet_fifo #(.W($bits(asker_t)), .LOG(8)) askers (
      .clk, .rst, .in_valid(asker_valid), .in_ready(asker_room), .in_data(asker), .commit(1'b1), .abort(1'b0),
      .out_valid(asked_valid), .out_ready(w_op_ready && w_op.op.eod), .out_data(asked)
  );

  // --- Which replies may be copied.
  logic begins, begin_ok, settles, settle_passed, kills;
  logic [FILL_LOG-1:0] slot, settle_slot;
  assign slot = slot_of(asked);
  assign begins = w_op_ready && sole;
  assign kills = given && (source == FROM_FLUSH || (source == FROM_WIRE && (ends_copy || ends_all)));
  fill_table #(.LOG(FILL_LOG)) fills (
      .clk, .rst, .tick, .begin_valid(begins), .begin_slot(slot), .begin_ok, .begin_asker(asked),
      .begin_row_hash(w_op.row_hash), .begin_tag_hash(w_op.tag_hash), .settle_valid(settles), .settle_slot,
      .settle_passed, .kill_valid(kills), .kill_all(source == FROM_FLUSH || ends_all), .kill_row_hash(w_op.row_hash),
      .reply_slot(slot_of(f_asker)), .reply_asker(f_asker), .reply_row_hash(f_op.row_hash),
      .reply_tag_hash(f_op.tag_hash), .known, .alive, .reply_done(known && (f_op_ready || f_other))
  );
  assign filled = f_op_ready && alive;
  assign fill_dead = f_op_ready && !alive;
  assign flushed = given && (source == FROM_FLUSH || (source == FROM_WIRE && ends_all));

  // --- Keys and values to the store, in the order of the operations.
  logic ko_valid, ko_fill, vo_valid, vo_fill, key_done, value_done;
  logic [5:0] ko_beats, key_at;
  logic [8:0] vo_beats, value_at;
  fifo #(.W(7), .LOG(ORDER_LOG)) key_order (
      .clk, .rst, .in_valid(given && op.op.kbeats != 6'd0), .in_ready(keys_ready),
      .in_data({source == FROM_FILL, op.op.kbeats}), .out_valid(ko_valid), .out_ready(key_done),
      .out_data({ko_fill, ko_beats})
  );
  fifo #(.W(10), .LOG(ORDER_LOG)) value_order (
      .clk, .rst, .in_valid(given && op.op.vbeats != 9'd0), .in_ready(values_ready),
      .in_data({source == FROM_FILL, op.op.vbeats}), .out_valid(vo_valid), .out_ready(value_done),
      .out_data({vo_fill, vo_beats})
  );
  assign key_valid = ko_valid && (ko_fill ? f_key_valid : w_key_valid);
  assign key = ko_fill ? f_key : w_key;
  assign w_key_ready = ko_valid && !ko_fill && key_ready;
  assign f_key_ready = ko_valid && ko_fill && key_ready;
  assign key_done = key_valid && key_ready && key_at + 6'd1 == ko_beats;
  assign value_valid = vo_valid && (vo_fill ? f_value_valid : w_value_valid);
  assign value = vo_fill ? f_value : w_value;
  assign w_value_ready = vo_valid && !vo_fill && value_ready;
  assign f_value_ready = vo_valid && vo_fill && value_ready;
  assign value_done = value_valid && value_ready && value_at + 9'd1 == vo_beats;

  // --- Results, in the same order.
  typedef struct packed {
    source_t source;
    logic eod;
    logic sole;
    logic has_slot;
    logic [FILL_LOG-1:0] slot;
  } flight_t;
  flight_t begun, ended;
  logic ended_valid;
  assign begun = '{source: source, eod: w_op.op.eod, sole: sole, has_slot: begin_ok, slot: slot};
  fifo #(.W($bits(flight_t)), .LOG(ORDER_LOG)) order (
      .clk, .rst, .in_valid(given), .in_ready(order_ready), .in_data(begun), .out_valid(ended_valid),
      .out_ready(s_result_ready), .out_data(ended)
  );
  logic moves, to_front;      // the key and the value of a result are under way
  logic [5:0] key_left;
  logic [8:0] value_left;
  logic ready, of_wire, answered, replies;
  assign ready = ended_valid && s_result_valid && !moves;
  assign of_wire = ended.source == FROM_WIRE;
  // A reply that shows a CAS id needs the host's; a copy of a reply without one has 0.
  assign answered = of_wire && ended.sole && s_result.outcome == OUT_HIT &&
                    !((s_result.bin || s_result.ret_cas) && s_result.cas == 64'd0);
  assign replies = of_wire && ended.eod;
  always_comb begin
    result = s_result;
    if (!answered) begin
      result = '0;
      result.outcome = OUT_NONE;
      result.eod = 1'b1;
    end
  end
  assign result_valid = ready && replies;
  assign s_result_ready = ready && (!replies || result_ready);
  assign verdict_valid = result_valid && result_ready;
  assign verdict_answered = answered;
  assign settles = s_result_ready && of_wire && ended.sole && ended.has_slot;
  assign settle_slot = ended.slot;
  assign settle_passed = !answered;
  assign flush_done = s_result_ready && ended.source == FROM_FLUSH;

  // mc_format takes a text hit together with the first beat of its key.
  logic key_moves, value_moves, with_result;
  assign with_result = ready && answered && s_result.kbeats != 6'd0;
  assign key_out_valid = s_key_valid && (with_result || (to_front && key_left != 6'd0));
  assign value_out_valid = to_front && value_left != 9'd0 && s_value_valid;
  assign s_key_ready = with_result ? key_out_ready : key_left != 6'd0 && (!to_front || key_out_ready);
  assign s_value_ready = value_left != 9'd0 && (!to_front || value_out_ready);
  assign key_out = s_key;
  assign value_out = s_value;
  assign key_moves = s_key_valid && s_key_ready;
  assign value_moves = s_value_valid && s_value_ready;
  assign moves = key_left != 6'd0 || value_left != 9'd0;
  assign idle = !ended_valid && !moves && !f_op_valid && !op_valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      first <= 1'b1;
      keeps <= 1'b0;
      kept <= FROM_WIRE;
      flush_asked <= 1'b0;
      key_at <= '0;
      value_at <= '0;
      key_left <= '0;
      value_left <= '0;
    end else begin
      if (w_op_ready) first <= w_op.op.eod;
      keeps <= op_valid && !op_ready;
      kept <= source;
      if (flush_done) flush_asked <= 1'b0;
      else if (given && source == FROM_FLUSH) flush_asked <= 1'b1;
      if (key_valid && key_ready) key_at <= key_done ? 6'd0 : key_at + 6'd1;
      if (value_valid && value_ready) value_at <= value_done ? 9'd0 : value_at + 9'd1;
      if (s_result_ready) begin
        to_front <= answered;
        key_left <= s_result.kbeats - 6'(key_moves);
        value_left <= s_result.vbeats;
      end else begin
        if (key_moves) key_left <= key_left - 6'd1;
        if (value_moves) value_left <= value_left - 9'd1;
      end
    end
  end

  logic unused;
  assign unused = asker_room;
endmodule
