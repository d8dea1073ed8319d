// SPDX-License-Identifier: Apache-2.0
//
// Executes operations, one after the other, whose keys key_compare has compared: decides, and then passes the value on,
// writes a new item or changes the index. This is the one place where operations take effect. The item
// that is replaced stays unchanged in the other half of its slot until the row's next write.
//
// An item in memory, in words of 8 bytes:
//   word 0          31:0 flags, 63:32 second of expiry (0: never)
//   word 1          7:0 bytes of the key, 23:8 bytes of the value, 63:24 generation
//   word 2          CAS id
//   then            the key, then the value, each padded with zeros to whole words
module key_check
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAY_BITS = 3,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX,
    parameter int HAZARDS_LOG = 5
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   op_valid,
    output logic                   op_ready,
    input  meta_t                  op,
    input  logic [ROW_BITS-1:0]    row,
    input  logic [TAG_BITS-1:0]    tag,
    input  logic                   reads,   // there is an item with the operation's tag, and it comes
    input  logic [WAY_BITS-1:0]    way,
    input  logic                   half,
    input  logic [7:0]             beats,
    input  logic [HAZARDS_LOG-1:0] hazard,
    input  logic                   key_valid,
    output logic                   key_ready,
    input  logic [63:0]            key_data,
    input  logic                   value_valid,
    output logic                   value_ready,
    input  logic [63:0]            value_data,
    input  logic                   item_valid,
    output logic                   item_ready,
    input  logic [127:0]           item_data,
    input  logic                   item_two,   // the beat's second word counts
    // Results, and the keys and values that go with them.
    output logic                   result_valid,
    input  logic                   result_ready,
    output result_t                result,
    output logic                   key_out_valid,
    input  logic                   key_out_ready,
    output logic [63:0]            key_out_data,
    output logic                   value_out_valid,
    input  logic                   value_out_ready,
    output logic [63:0]            value_out_data,
    // Writes.
    output logic                   write_valid,
    input  logic                   write_ready,
    output logic [ROW_BITS+WAY_BITS:0] write_slot,
    output logic [7:0]             write_beats,
    output logic [HAZARDS_LOG-1:0] write_hazard,
    output logic                   data_valid,
    input  logic                   data_ready,
    output logic [63:0]            data,
    // The index, and the scoreboard: what changes, and of which operation.
    output logic [ROW_BITS-1:0]    change_row,
    output logic [TAG_BITS-1:0]    change_tag,
    output logic [WAY_BITS-1:0]    change_way,
    output logic [HAZARDS_LOG-1:0] change_hazard,
    output logic                   update_valid,
    output logic                   update_live,
    output logic [7:0]             update_beats,
    output logic                   update_half,
    output logic                   touch_valid,
    output logic                   free_valid,
    output logic                   writer_ends,  // an operation that may have written, and may have given its words to `data`
    // The clock.
    input  logic [31:0]            now,
    input  logic [31:0]            unix_start,
    input  logic [39:0]            generation,
    output logic                   flush_valid,
    output logic [31:0]            flush_exptime,  // from the cycle before it on
    input  logic                   set_cas_valid,
    input  logic [63:0]            set_cas,
    // For the counters.
    output logic                   counts_hit,
    output logic                   counts_miss,
    output logic                   counts_store,
    output logic                   counts_other_key,  // a tag was right, the key was not
    output logic                   idle       // no operation that has been taken is under way
);
  typedef enum logic [4:0] {
    X_AWAIT, X_HIT, X_ACT, X_TOUCH, X_TOUCH_DATA, X_DRAIN,
    X_WRITE, X_W_CAS, X_W_FLAGS, X_W_SIZES, X_W_KEY, X_W_VALUE, X_W_JOIN, X_W_NUMBER, X_PUBLISH,
    X_NUMBER, X_DIGITS, X_RESULT
  } state_t;
  state_t state;
  logic awaits;             // X_AWAIT, in a register of its own: much is kept by it
  logic ends;               // the operation, with this cycle

  // --- The next operation, and what is known of it.
  found_t found;
  logic found_valid;
  logic word_valid, word_last, word_take, kept_valid, kept_last, kept_take;
  logic [63:0] word, kept;
  key_compare u_compare (
      .clk, .rst, .op_valid, .op_ready, .op, .reads, .beats, .key_valid, .key_ready, .key_data, .item_valid, .item_ready,
      .item_data, .item_two, .key_out_valid, .key_out_ready, .key_out_data, .now, .unix_start, .generation, .found_valid,
      .found_ready(awaits), .found, .word_valid, .word_last, .word, .word_take, .kept_valid, .kept_last, .kept, .kept_take
  );
  do_t what, what_next;
  outcome_t outcome;
  err_t error;
  decision u_decision (.op, .found, .fits(found.joined <= 13'(VALUE_MAX)), .what(what_next), .outcome, .error);

  // --- The operation in progress.
  meta_t x;
  logic [ROW_BITS-1:0] x_row;
  logic [WAY_BITS-1:0] x_way;
  logic x_half, is_get, writes, other_key;
  logic [31:0] x_expiry;
  logic [39:0] x_generation;
  logic [11:0] old_vlen;
  result_t r;
  logic hit;                // the next operation is a get that hits
  assign hit = found.alive && op.op == OP_GET;
  logic item_none, value_none, key_none;  // nothing is left of the item, the operation's value, and its key
  logic [8:0] value_left;   // beats
  logic [31:0] new_expiry, new_flags;
  logic [11:0] new_vlen;
  logic [8:0] new_vbeats, vbeats_left;
  logic vbeats_one;         // vbeats_left == 1
  logic counts_number;      // an arithmetic command that has a number
  logic writes_started;     // the hazard ends with the memory's answer
  logic [63:0] next_cas;

  // --- The value of a hit passes by while the next operation begins.
  logic moves, own_valid;   // own_valid: a word is there, of the operation in progress
  assign own_valid = word_valid && !moves;
  assign value_out_valid = word_valid && moves;
  assign value_out_data = word;

  // --- incr and decr.
  logic number_take, number_summed, number_bad, number_aligned, number_converts;
  logic [63:0] number;
  logic [11:0] number_size;
  logic [191:0] digit_text;
  arithmetic u_arithmetic (
      .clk, .begins(state == X_ACT), .initial_only(what == D_VIVIFY), .initial_value(x.initial_value), .vlen(old_vlen),
      .decrements(x.op != OP_INCR), .delta(x.delta), .reads(state == X_NUMBER), .word_valid(own_valid), .word_none(item_none), .word,
      .take(number_take), .summed(number_summed), .bad(number_bad), .number, .converts(number_converts),
      .digits_come(state == X_DIGITS), .aligned(number_aligned), .size(number_size), .text(digit_text)
  );
  logic [63:0] digit_beat, last_mask;
  logic [1:0] beat_number;  // 3: all behind the digits
  always_ff @(posedge clk) last_mask <= byte_mask(new_vlen[2:0] != 3'd0 ? {1'b0, new_vlen[2:0]} : 4'd8);
  always_comb begin
    case (beat_number)
      2'd0: digit_beat = digit_text[63:0];
      2'd1: digit_beat = digit_text[127:64];
      2'd2: digit_beat = digit_text[191:128];
      default: digit_beat = {8{8'h20}};
    endcase
    if (vbeats_one) digit_beat &= last_mask;
  end

  // --- append and prepend.
  logic join_takes_word, join_takes_value, joined_valid;
  logic [63:0] joined_data;
  value_join u_join (
      .clk, .rst, .begins(state == X_ACT), .appends(x.op == OP_APPEND), .old_vlen, .op_vlen(x.vlen),
      .active(state == X_W_JOIN), .word_valid(own_valid), .word, .takes_word(join_takes_word), .value_valid, .value_data,
      .takes_value(join_takes_value), .out_valid(joined_valid), .out_ready(data_ready && state == X_W_JOIN), .out_data(joined_data)
  );

  // --- Handshakes. X_DRAIN takes what the operation does not use.
  logic writes_number, drained;
  assign writes_number = counts_number && !number_bad;
  assign drained = item_none && value_none && (key_none || writes_number);
  assign number_converts = state == X_DRAIN && drained && writes_number;
  assign word_take = moves ? value_out_ready : number_take || join_takes_word || (state == X_DRAIN && !item_none);
  assign kept_take = state == X_W_KEY ? data_ready : state == X_DRAIN && !key_none && !writes_number;
  always_comb begin
    case (state)
      X_DRAIN: value_ready = !value_none;
      X_W_VALUE: value_ready = data_ready;
      X_W_JOIN: value_ready = join_takes_value;
      default: value_ready = 1'b0;
    endcase
  end
  always_comb begin
    data_valid = 1'b0;
    data = '0;
    case (state)
      X_TOUCH_DATA: begin
        data_valid = 1'b1;
        data = {x_expiry, r.flags};
      end
      X_W_CAS: begin
        data_valid = 1'b1;
        data = x.own_cas ? x.cas : next_cas;
      end
      X_W_FLAGS: begin
        data_valid = 1'b1;
        data = {new_expiry, new_flags};
      end
      X_W_SIZES: begin
        data_valid = 1'b1;
        data = {x_generation, 4'd0, new_vlen, x.klen};
      end
      X_W_KEY: begin
        data_valid = kept_valid;
        data = kept;
      end
      X_W_VALUE: begin
        data_valid = value_valid;
        data = value_data;
      end
      X_W_JOIN: begin
        data_valid = joined_valid;
        data = joined_data;
      end
      X_W_NUMBER: begin
        data_valid = 1'b1;
        data = digit_beat;
      end
      default: ;
    endcase
  end
  assign write_valid = state == X_WRITE || state == X_TOUCH;
  assign write_slot = {x_row, x_way, state == X_TOUCH ? x_half : !x_half};
  assign write_beats = state == X_TOUCH ? 8'd1 : 8'(HEADER_BEATS) + {2'd0, x.kbeats} + new_vbeats[7:0];
  assign write_hazard = change_hazard;

  // --- Every operation ends with its result, but a get that changes the time.
  logic hits;
  assign hits = state == X_HIT && !moves && result_ready;
  assign ends = (hits && !x.touch) || (state == X_RESULT && result_ready) || (state == X_TOUCH_DATA && data_ready && is_get);
  assign result_valid = state == X_RESULT || (state == X_HIT && !moves);
  assign result = r;
  assign change_row = x_row;
  assign change_way = x_way;
  assign update_valid = state == X_PUBLISH || (state == X_ACT && what == D_REMOVE);
  assign update_live = state == X_PUBLISH;
  assign update_beats = write_beats;
  assign update_half = !x_half;
  assign touch_valid = state == X_PUBLISH || hits;
  assign free_valid = ends && writes && !writes_started;
  assign writer_ends = ends && writes;
  assign flush_exptime = x.exptime;
  assign counts_hit = hits;
  assign counts_miss = state == X_RESULT && result_ready && is_get;
  assign counts_store = state == X_PUBLISH;
  assign counts_other_key = state == X_ACT && other_key;
  assign idle = awaits && !moves;

  always_ff @(posedge clk) begin
    if (awaits) begin
      x <= op;
      x_row <= row;
      x_way <= way;
      x_half <= half;
      change_tag <= tag;
      change_hazard <= hazard;
      is_get <= op.op == OP_GET;
      writes <= is_write(op.op, op.touch);
      other_key <= found.reads && !found.match;
      x_expiry <= found.expiry;
      x_generation <= found.generation;
      old_vlen <= found.vlen;
      what <= what_next;
      item_none <= !found.has_words;
      key_none <= !found.keeps;
      value_left <= op.vbeats;
      value_none <= op.vbeats == 9'd0;
      writes_started <= 1'b0;
      counts_number <= 1'b0;
      // As append and prepend need it.
      new_flags <= found.flags;
      new_expiry <= found.item_expiry;
      new_vlen <= found.joined[11:0];
      r <= '0;
      r.outcome <= outcome;
      r.op <= op.op;
      r.err <= error;
      r.bin <= op.bin;
      r.quiet <= op.quiet;
      r.ret_cas <= op.ret_cas;
      r.ret_key <= op.ret_key;
      r.last_key <= op.last_key;
      r.eod <= op.eod;
      r.opcode <= op.opcode;
      r.opaque <= op.opaque;
      r.flags <= found.flags;
      r.cas <= found.cas;
      r.klen <= op.klen;
      r.kbeats <= found.kbeats;
      if (hit) begin
        r.vlen <= found.vlen;
        r.vbeats <= beats_of(found.vlen);
      end
    end else begin
      if (own_valid && word_take && word_last) item_none <= 1'b1;
      if (kept_valid && kept_take && kept_last) key_none <= 1'b1;
      if (value_valid && value_ready) begin
        value_left <= value_left - 9'd1;
        value_none <= value_left == 9'd1;
      end
      if (write_valid && write_ready) writes_started <= 1'b1;
    end
    flush_valid <= !rst && state == X_ACT && x.op == OP_FLUSH;
    if (rst) begin
      state <= X_AWAIT;
      awaits <= 1'b1;
      moves <= 1'b0;
      next_cas <= 64'd1;
    end else begin
      awaits <= awaits ? !found_valid : ends;
      if (hits) moves <= !item_none;
      else if (value_out_valid && value_out_ready && word_last) moves <= 1'b0;
      case (state)
        X_AWAIT: if (found_valid) state <= hit ? X_HIT : X_ACT;
        X_HIT: if (hits) state <= x.touch ? X_TOUCH : X_AWAIT;
        X_ACT: begin
          case (what)
            D_STORE: begin
              new_flags <= x.flags;
              new_expiry <= x_expiry;
              new_vlen <= x.vlen;
              new_vbeats <= x.vbeats;
              state <= X_WRITE;
            end
            D_JOIN: begin
              new_vbeats <= beats_of(new_vlen);
              state <= X_WRITE;
            end
            D_COUNT: begin
              counts_number <= 1'b1;
              state <= X_NUMBER;
            end
            D_VIVIFY: begin
              new_flags <= '0;
              new_expiry <= x_expiry;
              counts_number <= 1'b1;
              state <= X_DRAIN;
            end
            D_TOUCH: state <= X_TOUCH;
            default: state <= item_none && value_none && key_none ? X_RESULT : X_DRAIN;
          endcase
        end
        X_TOUCH: if (write_ready) state <= X_TOUCH_DATA;
        X_TOUCH_DATA: if (data_ready) state <= is_get ? X_AWAIT : X_RESULT;
        X_NUMBER: if (number_summed) state <= X_DRAIN;
        X_DRAIN:
        if (drained) begin
          state <= writes_number ? X_DIGITS : X_RESULT;
          if (counts_number) r.number <= number;
          if (counts_number && number_bad) r.outcome <= OUT_ERROR;
        end
        X_DIGITS:
        if (number_aligned) begin
          new_vlen <= number_size;
          new_vbeats <= beats_of(number_size);
          state <= X_WRITE;
        end
        X_WRITE: if (write_ready) state <= X_W_FLAGS;
        X_W_FLAGS: if (data_ready) state <= X_W_SIZES;
        X_W_SIZES: if (data_ready) state <= X_W_CAS;
        X_W_CAS: begin
          vbeats_left <= new_vbeats;
          vbeats_one <= new_vbeats == 9'd1;
          beat_number <= 2'd0;
          r.cas <= next_cas;
          if (data_ready) state <= X_W_KEY;
        end
        X_W_KEY:
        if (kept_valid && kept_last && data_ready) begin
          if (new_vbeats == 9'd0) state <= X_PUBLISH;
          else if (counts_number) state <= X_W_NUMBER;
          else if (what == D_JOIN) state <= X_W_JOIN;
          else state <= X_W_VALUE;
        end
        X_W_VALUE, X_W_JOIN, X_W_NUMBER: begin
          if (data_valid && data_ready) begin
            vbeats_left <= vbeats_left - 9'd1;
            vbeats_one <= vbeats_left == 9'd2;
            if (beat_number != 2'd3) beat_number <= beat_number + 2'd1;
            if (vbeats_one) state <= X_PUBLISH;
          end
        end
        X_PUBLISH: begin
          next_cas <= next_cas + 64'd1;
          state <= X_RESULT;
        end
        default: if (result_ready) state <= X_AWAIT;
      endcase
      if (set_cas_valid) next_cas <= set_cas;
    end
  end
endmodule
