// SPDX-License-Identifier: Apache-2.0
//
// Executes operations, one after the other: compares the whole key of an item that has the
// operation's tag with the operation's key, decides, and then passes the value on, writes a new
// item or changes the index. This is the one place where operations take effect. The item that is
// replaced stays unchanged in the other half of its slot until the row's next write.
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
    // The index.
    output logic                   update_valid,
    output logic                   update_live,
    output logic [7:0]             update_beats,
    output logic                   update_half,
    output logic                   touch_valid,
    output logic                   free_valid,
    // The clock.
    input  logic [31:0]            now,
    input  logic [31:0]            unix_start,
    input  logic [39:0]            generation,
    output logic                   flush_valid,
    input  logic                   set_cas_valid,
    input  logic [63:0]            set_cas,
    // For the counters.
    output logic                   counts_hit,
    output logic                   counts_miss,
    output logic                   counts_store,
    output logic                   counts_other_key  // a tag was right, the key was not
);
  typedef enum logic [4:0] {
    X_OP, X_FIRST, X_COMPARE, X_KEY, X_DECIDE, X_ACT, X_VALUE, X_TOUCH, X_TOUCH_DATA, X_DRAIN,
    X_WRITE, X_W_CAS, X_W_FLAGS, X_W_SIZES, X_W_KEY, X_W_VALUE, X_W_JOIN, X_W_NUMBER, X_PUBLISH,
    X_NUMBER, X_DIGITS, X_RESULT
  } state_t;
  state_t state;

  // --- The item that was found, and its words that are still to come.
  logic [127:0] words;
  logic [63:0] word;
  logic has_one, has_two;
  logic [1:0] item_take;
  word_window u_item (
      .clk, .rst, .in_valid(item_valid), .in_ready(item_ready), .in_data(item_data), .in_two(item_two),
      .view(words), .one(has_one), .two(has_two), .take(item_take)
  );
  assign word = words[63:0];
  logic [63:0] i_cas;
  logic [31:0] i_flags, i_expiry;
  logic [11:0] i_vlen;
  logic [7:0] item_left;
  logic item_none, item_one;  // of item_left: 0, 1
  logic same_size;          // its key has the size of the operation's
  logic match;              // the keys are equal
  // What takes long is compared before X_DECIDE: expiry and generation in X_OP, the CAS id when it
  // comes, sizes in the cycle after X_OP. An operation belongs to the generation that it finds in
  // X_OP: if a delayed flush comes later, it has happened before it.
  logic live;               // the item is of this generation and has not expired
  logic [39:0] own_generation;
  logic cas_differs;
  logic alive;
  assign alive = match && live;

  logic [63:0] next_cas;
  logic [63:0] key_mem[32];
  logic [5:0] key_at;
  logic [8:0] value_left;   // beats of the operation's value that are still to come
  logic value_none;         // none
  logic [5:0] key_left;

  result_t r;               // of the operation in progress
  logic [31:0] new_expiry, new_flags;
  logic [11:0] new_vlen;
  logic [8:0] new_vbeats, vbeats_left;
  logic counts_number;      // X_DIGITS leads to a write, of an arithmetic command

  logic [31:0] op_expiry;  // from the cycle after X_OP on
  always_ff @(posedge clk) op_expiry <= expiry_second(op.exptime, now, unix_start);

  // Whether the key goes to mc_format, whatever the outcome; else only a miss that shows its key. From the cycle after X_OP on.
  logic forwards, key_forward, op_has_key;
  always_ff @(posedge clk) begin
    forwards <= op.op == OP_GET && (!op.bin || op.ret_key);
    key_forward <= op.op == OP_GET && op.bin && op.ret_key;  // in X_KEY
    op_has_key <= has_key(op.op);
  end

  // X_DECIDE finds out what is done, X_ACT does it. A get that hits is done in X_DECIDE.
  do_t what, what_next;
  outcome_t outcome, outcome_next;
  err_t error, error_next;
  always_ff @(posedge clk) begin
    what <= what_next;
    outcome <= outcome_next;
    error <= error_next;
  end
  logic [12:0] joined;     // bytes of both values, for append and prepend
  wire fits = joined <= 13'(VALUE_MAX);
  decision u_decision (
      .op, .alive, .cas_differs, .has_value(i_vlen != 12'd0), .fits, .what(what_next), .outcome(outcome_next), .error(error_next)
  );
  logic is_get;
  logic gives_value;       // a hit: what X_DECIDE must know soonest
  assign gives_value = state == X_DECIDE && is_get && alive;

  // --- incr and decr.
  logic number_take, number_summed, number_bad, number_aligned, number_converts;
  logic [63:0] number;
  logic [11:0] number_size;
  logic [191:0] digit_text;
  arithmetic u_arithmetic (
      .clk, .begins(state == X_ACT), .initial_only(what == D_VIVIFY), .initial_value(op.initial_value), .vlen(i_vlen),
      .decrements(op.op != OP_INCR), .delta(op.delta), .reads(state == X_NUMBER), .word_valid(has_one), .word_none(item_none), .word,
      .take(number_take), .summed(number_summed), .bad(number_bad), .number, .converts(number_converts),
      .digits_come(state == X_DIGITS), .aligned(number_aligned), .size(number_size), .text(digit_text)
  );
  logic [63:0] digit_beat;
  logic [8:0] beat_number;
  assign beat_number = new_vbeats - vbeats_left;
  assign digit_beat = (beat_number == 9'd0 ? digit_text[63:0] : beat_number == 9'd1 ? digit_text[127:64] :
                       beat_number == 9'd2 ? digit_text[191:128] : {8{8'h20}}) &
                      byte_mask(vbeats_left == 9'd1 && new_vlen[2:0] != 3'd0 ? {1'b0, new_vlen[2:0]} : 4'd8);

  // --- append and prepend.
  logic join_takes_word, join_takes_value, joined_valid;
  logic [63:0] joined_data;
  value_join u_join (
      .clk, .rst, .begins(state == X_ACT), .appends(op.op == OP_APPEND), .old_vlen(i_vlen), .op_vlen(op.vlen),
      .active(state == X_W_JOIN), .word_valid(has_one), .word, .takes_word(join_takes_word), .value_valid, .value_data,
      .takes_value(join_takes_value), .out_valid(joined_valid), .out_ready(data_ready && state == X_W_JOIN), .out_data(joined_data)
  );
  // --- Handshakes.
  // The CAS id comes with the key's first word.
  logic compares, compares_first, compares_next, key_goes;
  logic [63:0] compare_word;
  assign compare_word = state == X_FIRST ? words[127:64] : word;
  assign key_goes = key_valid && (!forwards || key_out_ready);
  assign compares_first = state == X_FIRST && has_two && key_goes;
  assign compares_next = state == X_COMPARE && has_one && key_goes;
  assign compares = compares_first || compares_next;
  logic passes_key;
  assign passes_key = state == X_KEY && key_left != 6'd0 && key_valid && (!key_forward || key_out_ready);
  assign key_ready = compares || passes_key;
  assign key_out_valid = (((state == X_FIRST && has_two) || (state == X_COMPARE && has_one)) && forwards && key_valid) ||
                         (state == X_KEY && key_forward && key_left != 6'd0 && key_valid);
  assign key_out_data = key_data;
  // The first beat of a value goes out with the result.
  logic value_now;
  assign value_now = state == X_VALUE || (gives_value && result_ready);
  logic value_drain, item_drain;
  assign value_drain = state == X_DRAIN && !value_none && r.outcome != OUT_STORED;
  assign item_drain = state == X_DRAIN && !item_none;
  logic drained;           // X_DRAIN is over, of an operation whose value is not needed
  assign drained = state == X_DRAIN && r.outcome != OUT_STORED && value_none && item_none;
  assign number_converts = drained && counts_number && !number_bad;
  always_comb begin
    // Two words, or one: of each state, side by side, since this is what all words wait for.
    item_take[1] = (state == X_OP && op_valid && reads && has_two) || compares_first;
    item_take[0] = compares_next ||
                   (has_one && ((value_now && value_out_ready && !item_none) || number_take || item_drain || join_takes_word));
    case (state)
      X_DRAIN: value_ready = value_drain;
      X_W_VALUE: value_ready = data_ready;
      X_W_JOIN: value_ready = join_takes_value;
      default: value_ready = 1'b0;
    endcase
  end
  assign value_out_valid = value_now && has_one && !item_none;
  assign value_out_data = word;
  always_comb begin
    data_valid = 1'b0;
    data = '0;
    case (state)
      X_TOUCH_DATA: begin
        data_valid = 1'b1;
        data = {op_expiry, i_flags};
      end
      X_W_CAS: begin
        data_valid = 1'b1;
        data = op.own_cas ? op.cas : next_cas;
      end
      X_W_FLAGS: begin
        data_valid = 1'b1;
        data = {new_expiry, new_flags};
      end
      X_W_SIZES: begin
        data_valid = 1'b1;
        data = {own_generation, 4'd0, new_vlen, op.klen};
      end
      X_W_KEY: begin
        data_valid = 1'b1;
        data = key_mem[key_at[4:0]];
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
  assign write_slot = {row, way, state == X_TOUCH ? half : !half};
  assign write_beats = state == X_TOUCH ? 8'd1 : 8'(HEADER_BEATS) + {2'd0, op.kbeats} + new_vbeats[7:0];
  assign write_hazard = hazard;
  // Every operation ends in X_RESULT, after a publication or without one. Its result goes out
  // earlier where a value follows.
  logic ends;
  logic result_sent;
  // A get ends with the last beat of its value.
  logic value_ends;
  assign ends = (state == X_RESULT && (result_ready || result_sent)) || value_ends;
  assign value_ends = value_now && !op.touch &&
                      (item_none || (item_one && has_one && value_out_ready));
  assign result_valid = (state == X_RESULT && !result_sent) || gives_value;
  assign op_ready = ends;
  logic writes_started;  // the hazard ends with the memory's answer
  assign update_valid = state == X_PUBLISH || (state == X_ACT && what == D_REMOVE);
  assign update_live = state == X_PUBLISH;
  assign update_beats = write_beats;
  assign update_half = !half;
  assign touch_valid = state == X_PUBLISH || (gives_value && result_ready);
  assign free_valid = ends && is_write(op.op, op.touch) && !writes_started;
  // Before its result is taken: nothing else is under way.
  logic is_flush, flushed;
  assign flush_valid = state == X_RESULT && is_flush && !flushed;
  always_ff @(posedge clk) begin
    is_flush <= op.op == OP_FLUSH;
    flushed <= state == X_RESULT && is_flush;
  end

  result_t hit;
  always_comb begin
    hit = r;
    if (state == X_DECIDE) begin
      hit.outcome = OUT_HIT;
      hit.flags = i_flags;
      hit.cas = i_cas;
      hit.vlen = i_vlen;
      hit.vbeats = beats_of(i_vlen);
      hit.kbeats = forwards ? op.kbeats : 6'd0;
    end
  end
  assign result = hit;

  assign counts_hit = gives_value && result_ready;
  assign counts_miss = ends && op.op == OP_GET && r.outcome == OUT_MISS;
  assign counts_store = state == X_PUBLISH;
  assign counts_other_key = state == X_DECIDE && reads && !match;

  always_ff @(posedge clk) begin
    if (compares || passes_key) key_mem[key_at[4:0]] <= key_data;
    if (rst) begin
      state <= X_OP;
      next_cas <= 64'd1;
    end else begin
      case (item_take)
        2'd0: ;
        2'd1: begin
          item_left <= item_left - 8'd1;
          {item_none, item_one} <= {item_one, item_left == 8'd2};
        end
        default: begin
          item_left <= item_left - 8'd2;
          {item_none, item_one} <= {item_left == 8'd2, item_left == 8'd3};
        end
      endcase
      joined <= {1'b0, i_vlen} + {1'b0, op.vlen};
      if (value_valid && value_ready) begin
        value_left <= value_left - 9'd1;
        value_none <= value_left == 9'd1;
      end
      if (key_valid && key_ready) begin
        key_at <= key_at + 6'd1;
        key_left <= key_left - 6'd1;
      end
      case (state)
        X_OP: begin
          match <= words[71:64] == op.klen;
          key_at <= '0;
          key_left <= op.kbeats;
          value_left <= op.vbeats;
          value_none <= op.vbeats == 9'd0;
          item_left <= beats - 8'd2;
          {item_none, item_one} <= {beats == 8'd2, beats == 8'd3};
          i_flags <= words[31:0];
          i_expiry <= words[63:32];
          i_vlen <= words[83:72];
          same_size <= words[71:64] == op.klen;
          live <= words[127:88] == generation && (words[63:32] == 32'd0 || words[63:32] > now);
          own_generation <= generation;
          is_get <= op.op == OP_GET;
          writes_started <= 1'b0;
          result_sent <= 1'b0;
          counts_number <= 1'b0;
          r <= '0;
          r.op <= op.op;
          r.err <= op.err;
          r.bin <= op.bin;
          r.quiet <= op.quiet;
          r.ret_cas <= op.ret_cas;
          r.ret_key <= op.ret_key;
          r.last_key <= op.last_key;
          r.eod <= op.eod;
          r.opcode <= op.opcode;
          r.opaque <= op.opaque;
          r.klen <= op.klen;
          case (op.op)
            OP_NOP: r.outcome <= OUT_NONE;
            OP_END: r.outcome <= OUT_END;
            OP_FLUSH, OP_OK: r.outcome <= OUT_OK;
            OP_VERSION: r.outcome <= OUT_VERSION;
            OP_NOOP: r.outcome <= OUT_NOOP;
            default: r.outcome <= OUT_ERROR;
          endcase
          if (op_valid) begin
            if (reads) begin
              if (has_two) state <= words[71:64] == op.klen ? X_FIRST : X_KEY;
            end else begin
              match <= 1'b0;
              item_left <= '0;
              {item_none, item_one} <= 2'b10;
              state <= op.kbeats != 6'd0 ? X_KEY : X_RESULT;
            end
          end
        end
        X_FIRST, X_COMPARE:
        if (compares) begin
          if (state == X_FIRST) begin
            i_cas <= word;
            cas_differs <= op.cas_cmp && op.cas != word;
          end
          if (compare_word != key_data) match <= 1'b0;
          state <= key_left == 6'd1 ? X_DECIDE : X_COMPARE;
        end
        X_KEY: begin
          if (key_left == 6'd0) state <= X_DRAIN;
          else if (passes_key && key_left == 6'd1) state <= op_has_key ? X_DECIDE : X_DRAIN;
        end
        X_DECIDE:
        if (!gives_value) begin
          state <= X_ACT;
        end else if (result_ready) begin
          result_sent <= 1'b1;
          state <= value_ends ? X_OP : X_VALUE;
        end
        X_ACT: begin
          r.outcome <= outcome;
          if (outcome == OUT_ERROR) r.err <= error;
          r.cas <= i_cas;
          r.flags <= i_flags;
          r.kbeats <= (forwards && reads && same_size) || key_forward ? op.kbeats : 6'd0;
          new_flags <= op.flags;
          new_expiry <= op_expiry;
          new_vlen <= op.vlen;
          new_vbeats <= op.vbeats;
          case (what)
            D_STORE: state <= !item_none ? X_DRAIN : X_WRITE;
            D_JOIN: begin
              new_flags <= i_flags;
              new_expiry <= i_expiry;
              new_vlen <= joined[11:0];
              new_vbeats <= beats_of(joined[11:0]);
              state <= X_WRITE;
            end
            D_COUNT: begin
              new_flags <= i_flags;
              new_expiry <= i_expiry;
              counts_number <= 1'b1;
              state <= X_NUMBER;
            end
            D_VIVIFY: begin
              new_flags <= '0;
              counts_number <= 1'b1;
              state <= X_DRAIN;
            end
            D_TOUCH: state <= X_TOUCH;
            default: state <= item_none && value_none ? X_RESULT : X_DRAIN;
          endcase
        end
        X_VALUE: begin
          if (item_none || (item_one && has_one && value_out_ready))
            state <= op.touch ? X_TOUCH : X_OP;
        end
        X_TOUCH:
        if (write_ready) begin
          writes_started <= 1'b1;
          state <= X_TOUCH_DATA;
        end
        X_TOUCH_DATA: if (data_ready) state <= X_DRAIN;
        // What the operation does not use of its value and of the item.
        X_DRAIN: begin
          if (r.outcome == OUT_STORED) begin
            // A storage command that replaces: its value is still needed.
            if (item_none) state <= X_WRITE;
          end else if (drained) begin
            state <= X_RESULT;
            if (counts_number) begin
              if (number_bad) begin
                r.outcome <= OUT_ERROR;
                r.err <= ERR_NONNUM;
              end else begin
                r.number <= number;
                state <= X_DIGITS;
              end
            end
          end
        end
        X_NUMBER: if (number_summed) state <= X_DRAIN;
        X_DIGITS:
        if (number_aligned) begin
          new_vlen <= number_size;
          new_vbeats <= beats_of(number_size);
          state <= X_WRITE;
        end
        X_WRITE:
        if (write_ready) begin
          writes_started <= 1'b1;
          state <= X_W_FLAGS;
        end
        X_W_FLAGS: if (data_ready) state <= X_W_SIZES;
        X_W_SIZES: if (data_ready) state <= X_W_CAS;
        X_W_CAS: begin
          key_at <= '0;
          vbeats_left <= new_vbeats;
          r.cas <= next_cas;
          if (data_ready) state <= X_W_KEY;
        end
        X_W_KEY:
        if (data_ready) begin
          key_at <= key_at + 6'd1;
          if (key_at + 6'd1 == op.kbeats) begin
            if (new_vbeats == 9'd0) state <= X_PUBLISH;
            else if (counts_number) state <= X_W_NUMBER;
            else if (op.op == OP_APPEND || op.op == OP_PREPEND) state <= X_W_JOIN;
            else state <= X_W_VALUE;
          end
        end
        X_W_VALUE, X_W_JOIN, X_W_NUMBER: begin
          if (data_valid && data_ready) begin
            vbeats_left <= vbeats_left - 9'd1;
            if (vbeats_left == 9'd1) state <= X_PUBLISH;
          end
        end
        X_PUBLISH: begin
          next_cas <= next_cas + 64'd1;
          state <= X_RESULT;
        end
        default: if (ends) state <= X_OP;
      endcase
      if (set_cas_valid) next_cas <= set_cas;
    end
  end
endmodule
