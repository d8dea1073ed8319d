// SPDX-License-Identifier: Apache-2.0
//
// Compares an operation's whole key with that of the item that has its tag, while the operation before it is
// executed. What the execution may need waits here: the words of the value of an item that has the key, and the
// key of an operation that may write. Nothing takes effect here.
//
// An item comes in beats of two words. Its first beat has flags, expiry, sizes and generation; its second one has the CAS id and the
// key's first word. Keys are compared a word a cycle, values pass a beat a cycle.
module key_compare
  import wc_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  logic         op_valid,
    output logic         op_ready,   // not before it has been taken
    input  meta_t        op,
    input  logic         reads,
    input  logic [7:0]   beats,
    input  logic         key_valid,
    output logic         key_ready,
    input  logic [63:0]  key_data,
    input  logic         item_valid,
    output logic         item_ready,
    input  logic [127:0] item_data,
    input  logic         item_two,
    // For mc_format.
    output logic         key_out_valid,
    input  logic         key_out_ready,
    output logic [63:0]  key_out_data,
    input  logic [31:0]  now,
    input  logic [31:0]  unix_start,
    input  logic [39:0]  generation,
    // What is known of `op`, and of the item.
    output logic         found_valid,
    input  logic         found_ready,
    output found_t       found,
    // The item's value, of an operation that needs it.
    output logic         word_valid,
    output logic         word_last,
    output logic [63:0]  word,
    input  logic         word_take,
    // The key, of an operation that may write.
    output logic         kept_valid,
    output logic         kept_last,
    output logic [63:0]  kept,
    input  logic         kept_take
);
  localparam int KEY_LOG = 5;  // words: a whole key has room, with the one at the front, whatever its limit, so nothing waits in a circle

  // A bit each, since all words wait for it.
  typedef enum logic [4:0] {P_OP = 5'd1, P_FIRST = 5'd2, P_KEY = 5'd4, P_PASS = 5'd8, P_REST = 5'd16} state_t;
  state_t state;
  logic at_op, at_first, at_key, at_pass, at_rest;
  assign {at_rest, at_pass, at_key, at_first, at_op} = state;

  // --- What the operation asks for. From the cycle after P_OP on.
  logic is_shown;        // its key goes to mc_format, whatever the outcome
  logic is_shown_on_miss, keeps, needs_value, any_cas;
  logic [31:0] expiry;
  always_ff @(posedge clk) begin
    is_shown <= op.op == OP_GET && (!op.bin || op.ret_key);
    is_shown_on_miss <= op.op == OP_GET && op.bin && op.ret_key;
    keeps <= op.op inside {OP_SET, OP_ADD, OP_REPLACE, OP_APPEND, OP_PREPEND, OP_INCR, OP_DECR};
    needs_value <= op.op inside {OP_GET, OP_APPEND, OP_PREPEND, OP_INCR, OP_DECR};
    any_cas <= op.cas != 64'd0;
    expiry <= expiry_second(op.exptime, now, unix_start);
  end

  // --- Handshakes. Each waits for registers of the buffers that it fills, never for what is done in the same cycle. No
  // operation's key both goes to mc_format and is kept.
  logic kept_room, value_room;
  logic second;          // the beat's second word is next
  logic key_takes_beat;  // P_FIRST, P_KEY: with the word that is compared its beat goes
  logic key_one;         // one word of the key is left
  logic none, one;       // beats of the item are left
  logic key_room, compares, passes, ends;
  logic told;            // P_REST: the operation has been taken
  logic flushes;         // a flush has been taken, and may not have happened yet
  assign key_room = keeps ? kept_room : key_out_ready || !is_shown;
  assign compares = (at_first || at_key) && item_valid && key_valid && key_room && value_room;
  assign passes = at_pass && key_valid && (keeps ? kept_room : key_out_ready || !is_shown_on_miss);
  assign key_ready = compares || passes;
  assign key_out_valid = key_valid && ((at_pass && is_shown_on_miss) || ((at_first || at_key) && is_shown && item_valid && value_room));
  assign key_out_data = key_data;
  // Whether an item is there does not matter to it.
  assign item_ready = (at_op && op_valid && reads && !flushes) || (key_takes_beat && key_valid && key_room && value_room) ||
                      (at_rest && value_room && !none);
  assign found_valid = at_rest && !told;
  assign ends = (told || found_ready) && (none || (one && item_valid && value_room));
  assign op_ready = at_rest && ends;

  logic [6:0] left, behind_first;  // beats of the item
  logic [5:0] key_left;
  logic has_item, same_size, match, live, cas_differs, differs;
  logic [31:0] flags, item_expiry;
  logic [63:0] cas;
  logic [11:0] vlen;
  logic [12:0] joined;
  logic [39:0] own_generation;
  assign behind_first = beats[7:1] - {6'd0, !beats[0]};
  assign differs = (second ? item_data[127:64] : item_data[63:0]) != key_data;
  always_ff @(posedge clk) begin
    if (item_valid && item_ready && !at_op) begin
      left <= left - 7'd1;
      {none, one} <= {one, left == 7'd2};
    end
    // Sizes are added in the cycle after P_OP.
    joined <= {1'b0, vlen} + {1'b0, op.vlen};
    case (state)
      P_OP: begin
        has_item <= reads;
        match <= reads && item_data[71:64] == op.klen;
        flags <= item_data[31:0];
        item_expiry <= item_data[63:32];
        vlen <= item_data[83:72];
        live <= item_data[127:88] == generation && (item_data[63:32] == 32'd0 || item_data[63:32] > now);
        // If a delayed flush comes later, it has happened after this operation.
        own_generation <= generation;
        same_size <= reads && item_data[71:64] == op.klen;
        left <= behind_first;
        {none, one} <= reads ? {1'b0, behind_first == 7'd1} : 2'b10;
        key_left <= op.kbeats;
        key_one <= op.kbeats == 6'd1;
        second <= 1'b1;  // of the beat that P_FIRST sees
        told <= 1'b0;
      end
      P_FIRST, P_KEY, P_PASS: begin
        if (at_first) begin
          cas <= item_data[63:0];
          cas_differs <= op.cas_cmp && op.cas != item_data[63:0];
        end
        if (compares && differs) match <= 1'b0;
        if (key_ready) begin
          key_left <= key_left - 6'd1;
          key_one <= key_left == 6'd2;
        end
      end
      default: if (found_ready) told <= 1'b1;
    endcase
    if (rst) begin
      state <= P_OP;
      flushes <= 1'b0;
      key_takes_beat <= 1'b0;
    end else begin
      if (found_ready) flushes <= found_valid && op.op == OP_FLUSH;
      case (state)
        P_OP:
        if (op_valid && !flushes && (item_valid || !reads)) begin
          if (op.kbeats == 6'd0) begin
            state <= P_REST;
          end else if (reads && item_data[71:64] == op.klen) begin
            state <= P_FIRST;
            key_takes_beat <= 1'b1;
          end else begin
            state <= P_PASS;
          end
        end
        P_FIRST, P_KEY:
        if (compares) begin
          state <= key_one ? P_REST : P_KEY;
          // The second word follows the first one, which keeps the beat, or the key's last word takes it.
          second <= at_key && !second;
          key_takes_beat <= !key_one && ((at_key && !second) || key_left == 6'd2);
        end
        P_PASS: if (passes && key_one) state <= P_REST;
        default: if (ends) state <= P_OP;
      endcase
    end
  end
  logic alive;
  assign alive = match && live;
  always_comb begin
    found.reads = has_item;
    found.match = match;
    found.alive = alive;
    found.any_cas = any_cas;
    found.cas_differs = cas_differs;
    found.keeps = keeps;
    found.has_words = alive && needs_value && vlen != 12'd0;
    found.flags = flags;
    found.item_expiry = item_expiry;
    found.cas = cas;
    found.vlen = vlen;
    found.joined = joined;
    found.kbeats = (is_shown && same_size) || is_shown_on_miss ? op.kbeats : 6'd0;
    found.expiry = expiry;
    found.generation = own_generation;
  end

  // --- The value's beats go through a register, and on if the item has the key, which is known by then.
  logic beat_valid, beat_last, beat_first, beat_second;  // which of its words are the value's
  logic [127:0] beat;
  always_ff @(posedge clk) begin
    beat_valid <= !rst && item_valid && item_ready && (at_rest || (at_key && !second && item_two));
    beat_last <= one;
    beat_first <= at_rest;
    beat_second <= item_two;
    beat <= item_data;
  end
  logic held_valid, held_first, held_second, held_last, half, all_taken;
  logic [127:0] held;
  fifo #(.W(131), .LOG(4), .HEAD(1'b1), .SPARE(1)) values (
      .clk, .rst, .in_valid(beat_valid && alive && needs_value), .in_ready(value_room), .in_data({beat_last, beat_second, beat_first, beat}),
      .out_valid(held_valid), .out_ready(word_take && all_taken), .out_data({held_last, held_second, held_first, held})
  );
  assign word_valid = held_valid;
  assign word = half || !held_first ? held[127:64] : held[63:0];
  assign all_taken = half || !(held_first && held_second);
  assign word_last = held_last && all_taken;
  always_ff @(posedge clk) begin
    if (rst) half <= 1'b0;
    else if (held_valid && word_take) half <= !all_taken;
  end

  // A key's words go through a register: whether one is taken is known late.
  logic keeps_word;
  logic [64:0] word_kept;
  always_ff @(posedge clk) begin
    keeps_word <= !rst && key_valid && key_ready && keeps;
    word_kept <= {key_one, key_data};
  end
  fifo #(.W(65), .LOG(KEY_LOG), .HEAD(1'b1), .SPARE(1)) keys (
      .clk, .rst, .in_valid(keeps_word), .in_ready(kept_room), .in_data(word_kept),
      .out_valid(kept_valid), .out_ready(kept_take), .out_data({kept_last, kept})
  );
endmodule
